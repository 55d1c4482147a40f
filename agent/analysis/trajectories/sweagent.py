"""SWE-agent's trajectories (`*.traj`). Calls of the editor of version 1 are read as edits, all others as commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent.actions import Action, Edit, Observation, Shell, Submit, View, Write
from agent.analysis.trajectories import Trajectory, typed
from agent.parsing import loads
from agent.run.action_log import ActionRecord, action_record

EDITOR = "str_replace_editor"
_NUMBER = re.compile(r"-?[0-9]{1,9}")
OPTIONS = ("--file_text", "--old_str", "--new_str", "--insert_line", "--view_range")
FAILED = ("No replacement was performed", "Invalid `", "The path ", "File already exists at", "No edit history found")
"""Texts in the editor's output that say that nothing was changed."""


@dataclass(frozen=True, slots=True)
class _Step:
    action: str
    observation: str = ""
    state: Any = None


@dataclass(frozen=True, slots=True)
class _Info:
    exit_status: str | int | None = None
    submission: Any = None


@dataclass(frozen=True, slots=True)
class _Attempt:
    trajectory: list[_Step]
    info: _Info = field(default_factory=_Info)


def read(path: Path, data: Any) -> Trajectory:
    """The trajectory; if the file has several attempts, the last one.

    Raises:
        agent.errors.UsageError: it is not a trajectory of this program.
    """
    attempts = data.get("attempts")
    several = "trajectory" not in data and isinstance(attempts, list) and attempts
    attempt = typed(_Attempt, attempts[-1] if several else data, path)
    places = _places(attempt.trajectory)
    action_records = tuple(_action_records(attempt.trajectory, places))
    submission = attempt.info.submission
    ended = str(attempt.info.exit_status or "not ended")
    return Trajectory("SWE-agent", action_records, ended, submission if isinstance(submission, str) else "")


def _places(steps: Sequence[_Step]) -> tuple[str, ...]:
    """The directory of the repository: the first working directory. Before version 1 the state is JSON in a string."""
    for step in steps[:1]:
        state = step.state
        if isinstance(state, str):
            try:
                state = loads(state)
            except ValueError:
                state = None
        if isinstance(state, dict) and state.get("working_dir"):
            return (str(state["working_dir"]),)
    return ("/testbed",)


def _action_records(steps: Sequence[_Step], places: Sequence[str]) -> Iterator[ActionRecord]:
    """The actions of the steps. A step whose answer could not be read has none."""
    for step in steps:
        if step.action.strip():
            action = _action(step.action.strip())
            failed = not isinstance(action, (Shell, Submit)) and any(sign in step.observation for sign in FAILED)
            yield action_record(None, action, Observation(step.observation, ok=not failed), places)


def _action(command: str) -> Action:
    if command.split(maxsplit=1)[0] == "submit":
        return Submit()
    try:
        words = shlex.split(command)
    except ValueError:
        return Shell(command)
    return (_edit(words) if words[0] == EDITOR and len(words) > 2 else None) or Shell(command)


def _edit(words: Sequence[str]) -> Action | None:
    """A call of the editor: `str_replace_editor COMMAND PATH --NAME VALUE ...`; None for other commands of it."""
    command, path = words[1:3]
    names = [n for n, word in enumerate(words) if n > 2 and word in OPTIONS]
    options = {words[n]: words[n + 1 : following] for n, following in pairwise([*names, len(words)])}
    text = {name: values[0] if values else "" for name, values in options.items()}
    match command:
        case "str_replace":
            return Edit(path, text.get("--old_str", ""), text.get("--new_str", ""))
        case "create":
            return Write(path, text.get("--file_text", ""))
        case "insert":
            after = _numbers(options.get("--insert_line", ()))
            return Edit(path, "", text.get("--new_str", ""), after[0] + 1 if after else None)
        case "view":
            lines = _numbers(options.get("--view_range", ()))
            return View(path, max(1, lines[0]), max(0, lines[1])) if len(lines) == 2 else View(path)
        case _:
            return None


def _numbers(words: Sequence[str]) -> list[int]:
    return [int(word) for word in words if _NUMBER.fullmatch(word)]
