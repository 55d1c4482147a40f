"""OpenHands' trajectories: its stream of events, saved, downloaded, or kept by an evaluation (`history`).

Messages, thoughts, recalls and browsing are not read as actions.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.actions import Action, Edit, Observation, Shell, Submit, View, Write
from agent.analysis.trajectories import Trajectory, typed
from agent.run.action_log import ActionRecord, action_record


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
    """The exit code in versions without metadata."""
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
    def result(self) -> Observation:
        """The event as an observation. A command fails by its exit code, any other action by an error."""
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
    """Whether these are events of OpenHands: each has a `source`."""
    return isinstance(events, list) and bool(events) and isinstance(events[0], dict) and "source" in events[0]


def read(path: Path, data: Any) -> Trajectory:
    """The trajectory.

    Raises:
        agent.errors.UsageError: it is not a trajectory of this program.
    """
    if not (isinstance(data, dict) and "history" in data):
        data = {"history": data["trajectory"] if isinstance(data, dict) else data}
    file = typed(_File, data, path)
    action_records = tuple(_action_records(file.history, _places(file.history)))
    states = [event.extras.agent_state for event in file.history if event.extras.agent_state]
    submitted = bool(action_records) and isinstance(action_records[-1].action, Submit)
    ended = "finished" if submitted else file.error or (states[-1] if states else "not ended")
    return Trajectory("OpenHands", action_records, ended, file.test_result.git_patch or "")


def _places(events: Sequence[_Event]) -> tuple[str, ...]:
    """The directory of the repository: the first working directory."""
    directories = (event.extras.metadata.working_dir for event in events)
    return (next(filter(None, directories), "/workspace"),)


def _action_records(events: Sequence[_Event], places: Sequence[str]) -> Iterator[ActionRecord]:
    answers = {event.cause: event for event in reversed(events) if event.observation and event.cause is not None}
    for event in events:
        if event.source == "agent" and event.action:
            answer = answers.get(event.id)
            action = _action(event.action, event.args, answer.extras.new_content if answer else None)
            if action is not None:
                yield action_record(None, action, answer.result if answer else Observation(""), places)


def _action(kind: str, args: _Arguments, content: str | None) -> Action | None:
    """An event as an action; None for kinds that are not read as actions. `content`: the file after an edit, if it was
    recorded."""
    match kind:
        case "run":
            return Shell(args.command)
        case "run_ipython":
            return Shell(f"python <<'EOF'\n{args.code}\nEOF")
        case "read":
            first, last = args.view_range if args.view_range and len(args.view_range) == 2 else (1, 0)
            return View(args.path, max(1, first), max(0, last))
        case "write":
            return Write(args.path, args.content)
        case "edit":
            return _edit(args, content)
        case "finish":
            return Submit()
        case _:
            return None


def _edit(args: _Arguments, content: str | None) -> Action:
    """A call of the editor. If a model made the edit from a draft, the new content of the file counts."""
    match args.command:
        case "str_replace":
            return Edit(args.path, args.old_str or "", args.new_str or "")
        case "insert":
            after = args.insert_line
            return Edit(args.path, "", args.new_str or "", None if after is None else after + 1)
        case "create":
            return Write(args.path, args.file_text or "")
        case "undo_edit":  # the restored content is not recorded
            return Shell(f"str_replace_editor undo_edit {shlex.quote(args.path)}")
        case _:
            return Write(args.path, args.content if content is None else content)
