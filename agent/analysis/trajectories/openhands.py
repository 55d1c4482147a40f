"""OpenHands' trajectories: its stream of events, as it is saved or downloaded, or kept of an evaluation (`history`).

What it says, thinks, recalls or browses is no deed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.actions import Action, Edit, Observation, Shell, Submit, View, Write
from agent.analysis.trajectories import Trajectory
from agent.analysis.trajectories.typed import typed
from agent.run.action_log import ActionRecord, action_record

__all__ = ["is_stream", "read"]


@dataclass(frozen=True, slots=True)
class _Arguments:
    command: str = ""
    code: str = ""
    path: str = ""
    content: str = ""
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    view_range: list[int] | None = None


@dataclass(frozen=True, slots=True)
class _Metadata:
    exit_code: int | None = None
    working_dir: str | None = None


@dataclass(frozen=True, slots=True)
class _Extras:
    metadata: _Metadata = field(default_factory=_Metadata)
    exit_code: int | None = None
    """Where versions before the metadata have it."""
    new_content: str | None = None
    agent_state: str = ""


@dataclass(frozen=True, slots=True)
class _Event:
    id: int = -1
    source: str | None = None
    cause: int | None = None
    """The number of the action that an observation answers."""
    action: str | None = None
    args: _Arguments = field(default_factory=_Arguments)
    observation: str | None = None
    content: str = ""
    extras: _Extras = field(default_factory=_Extras)

    @property
    def seen(self) -> Observation:
        """An observation as ours: a command has failed where its exit code says so, all else where it is an error."""
        code = self.extras.metadata.exit_code if self.extras.exit_code is None else self.extras.exit_code
        failed = self.observation == "error" or (self.observation == "run" and code not in (None, 0))
        return Observation(self.content, ok=not failed)


@dataclass(frozen=True, slots=True)
class _Tested:
    git_patch: str | None = None


@dataclass(frozen=True, slots=True)
class _File:
    history: list[_Event]
    test_result: _Tested = field(default_factory=_Tested)
    error: str | None = None


def is_stream(events: Any) -> bool:
    """Whether these are events of OpenHands: each says whose it is."""
    return isinstance(events, list) and bool(events) and isinstance(events[0], dict) and "source" in events[0]


def read(path: Path, data: Any) -> Trajectory:
    """The trajectory.

    Raises:
        agent.errors.UsageError: it is none.
    """
    kept = data if isinstance(data, dict) and "history" in data else {"history": _events(data)}
    found = typed(_File, kept, path)
    action_records = tuple(_deeds(found.history, _places(found.history)))
    states = [event.extras.agent_state for event in found.history if event.extras.agent_state]
    submitted = bool(action_records) and isinstance(action_records[-1].action, Submit)
    ended = "finished" if submitted else found.error or (states[-1] if states else "not ended")
    return Trajectory("OpenHands", action_records, ended, found.test_result.git_patch or "")


def _events(data: Any) -> Any:
    return data["trajectory"] if isinstance(data, dict) else data


def _places(events: Sequence[_Event]) -> tuple[str, ...]:
    """Where the repository is: the first working directory."""
    known = (event.extras.metadata.working_dir for event in events)
    return (next(filter(None, known), "/workspace"),)


def _deeds(events: Sequence[_Event], places: Sequence[str]) -> Iterator[ActionRecord]:
    answers = {event.cause: event for event in reversed(events) if event.observation and event.cause is not None}
    for event in events:
        if event.source == "agent" and event.action:
            answer = answers.get(event.id)
            action = _action(event.action, event.args, answer.extras.new_content if answer else None)
            if action is not None:
                yield action_record(None, action, answer.seen if answer else Observation(""), places)


def _action(kind: str, given: _Arguments, now: str | None) -> Action | None:
    """`now`: what the file holds afterwards, where that was recorded; None for what is no deed."""
    match kind:
        case "run":
            return Shell(given.command)
        case "run_ipython":
            return Shell(f"python <<'EOF'\n{given.code}\nEOF")
        case "read":
            first, last = given.view_range if given.view_range and len(given.view_range) == 2 else (1, 0)
            return View(given.path, max(1, first), max(0, last))
        case "write":
            return Write(given.path, given.content)
        case "edit":
            return _edit(given, now)
        case "finish":
            return Submit()
        case _:
            return None


def _edit(given: _Arguments, now: str | None) -> Action:
    """A call of its editor; where a model has made the edit from a draft, what came of it."""
    match given.command:
        case "str_replace":
            return Edit(given.path, given.old_str or "", given.new_str or "")
        case "insert":
            after = given.insert_line
            return Edit(given.path, "", given.new_str or "", None if after is None else after + 1)
        case "create":
            return Write(given.path, given.file_text or "")
        case "undo_edit":  # what the file held before is not told, only that it does again
            return Shell(f"str_replace_editor undo_edit {shlex.quote(given.path)}")
        case _:
            return Write(given.path, given.content if now is None else now)
