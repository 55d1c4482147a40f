"""Steps: the actions of a rollout by stage, with the pieces of files that each wrote and used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import groupby
from typing import Any, Literal, assert_never

from agent.actions import Debug, Edit, Invalid, Replacement, RunTests, Search, Shell, Submit, View, Write
from agent.analysis.diagnosis.commands import Command, read_command
from agent.run.action_log import ActionRecord
from agent.run.tree.node import NodeId

StageName = Literal["locate", "reproduce", "edit", "test", "submit"]
TRIALS = ("test_*", "*_test.*", "conftest.py", "*repro*", "*debug*", "tests/*", "test/*", "*/tests/*", "/tmp/*")  # noqa: S108
"""Files that are written to try something, not to fix the issue."""
PATCHES = ("*.patch", "*.diff", "patch.txt")
WHAT_CHARACTERS = 100
SUBMITTING = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What mini-swe-agent prints to submit."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file."""

    path: str
    text: str | None
    """None: the whole file."""
    loose: bool = False
    """Whether its lines may be parts of lines of the file, as for words of a command."""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One action of a rollout."""

    number: int
    """The position in the rollout, from 1."""
    node: NodeId | None
    """The node that the action led to."""
    stage: StageName
    what: str
    """The action in words."""
    ok: bool
    wrote: tuple[Piece, ...] = ()
    used: tuple[Piece, ...] = ()
    """The pieces that it replaced or was shown."""

    def as_json(self) -> dict[str, Any]:
        """The step without its pieces, which are in the journal."""
        return {name: getattr(self, name) for name in ("number", "node", "stage", "what", "ok")}


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive steps with the same purpose: locating the fault, reproducing it, editing, testing, submitting."""

    name: StageName
    steps: tuple[TraceStep, ...]


def trace(action_records: Iterable[ActionRecord]) -> tuple[TraceStep, ...]:
    """The steps, in order. Runs of tests or scripts reproduce the fault before the first edit of a source, and test the
    edit afterwards."""
    steps: list[TraceStep] = []
    edited = False
    for number, record in enumerate(action_records, 1):
        command = read_command(record.action.command) if isinstance(record.action, Shell) else Command()
        wrote = _wrote(record, command)
        stage = _stage(record, command, wrote, edited)
        edited = edited or stage == "edit"
        used = _used(record, command)
        steps.append(TraceStep(number, record.node, stage, _what(record), record.seen.ok, wrote, used))
    return tuple(steps)


def stages(steps: Sequence[TraceStep]) -> tuple[Stage, ...]:
    """The steps by stage."""
    return tuple(Stage(name, tuple(run)) for name, run in groupby(steps, key=lambda step: step.stage))


def _stage(record: ActionRecord, command: Command, wrote: Sequence[Piece], edited: bool) -> StageName:
    action = record.action
    paths = [record.path] if isinstance(action, (Edit, Write)) else [piece.path for piece in wrote]
    trial: StageName = "test" if edited else "reproduce"
    if isinstance(action, Submit) or (isinstance(action, Shell) and SUBMITTING in action.command):
        return "submit"
    if paths and all(_any(path, PATCHES) for path in paths):
        return "submit"
    if paths:
        return trial if all(_any(path, TRIALS) for path in paths) else "edit"
    return trial if isinstance(action, (RunTests, Debug)) or command.tests or command.runs else "locate"


def _any(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(path, pattern) or fnmatch(path.rpartition("/")[2], pattern) for pattern in patterns)


def _wrote(record: ActionRecord, command: Command) -> tuple[Piece, ...]:
    """What the action put into files, as far as it says so."""
    action, seen = record.action, record.seen
    match action:
        case Edit() if seen.ok:
            return tuple(_new(record.path, replacement) for replacement in action.replacements)
        case Write() if seen.ok:
            return (Piece(record.path, action.content),)
        case Shell() if not (seen.refused or seen.fork_lost):
            return tuple(Piece(path, command.text or None, loose=command.loose) for path in command.writes)
        case _:
            return ()


def _new(path: str, replacement: Replacement) -> Piece:
    kept = set(replacement.old.splitlines())
    new = [line for line in replacement.new.splitlines() if line not in kept]
    return Piece(path, "\n".join(new) or replacement.new)


def _used(record: ActionRecord, command: Command) -> tuple[Piece, ...]:
    action, output = record.action, record.seen.text
    match action:
        case Edit():
            return tuple(Piece(record.path, replacement.old) for replacement in action.replacements)
        case Write():
            return (Piece(record.path, None),)
        case View():
            return (Piece(record.path, output),)
        case Search():
            return (Piece("", output),)
        case Shell():
            files = dict.fromkeys((*command.reads, *command.writes))
            words = (Piece(path, action.command, loose=True) for path in command.writes)
            shown = (Piece(path, None if path in command.replaces else output) for path in files)
            return (*words, *shown)
        case RunTests() | Debug() | Submit() | Invalid():
            return ()
        case _:
            assert_never(action)


def _what(record: ActionRecord) -> str:
    action = record.action
    match action:
        case Edit() | Write():
            return f"{action.kind} {record.path}{'' if record.seen.ok else ' (refused)'}"
        case View():
            lines = f":{action.start}-{action.end or ''}" if action.end or action.start > 1 else ""
            return f"view {record.path}{lines}"
        case Search():
            return f"search {action.pattern} in {record.path}"
        case RunTests():
            return f"run {', '.join(action.tests) or 'all tests'}"
        case Debug():
            return f"debug {action.test}"
        case Submit():
            return "submit"
        case Invalid():
            return f"{action.name} (could not be read)"
        case Shell():
            line = " ".join(action.command.split())
            return line if len(line) <= WHAT_CHARACTERS else f"{line[:WHAT_CHARACTERS]} [...]"
        case _:
            assert_never(action)
