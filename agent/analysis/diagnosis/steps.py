"""Steps: what a rollout did, action by action, by stage, with the pieces of files that each wrote and saw."""

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

__all__ = ["Piece", "Stage", "TraceStep", "stages", "trace"]

StageName = Literal["locate", "reproduce", "edit", "test", "submit"]
TRIALS = ("test_*", "*_test.*", "conftest.py", "*repro*", "*debug*", "tests/*", "test/*", "*/tests/*", "/tmp/*")  # noqa: S108
"""Files that are written to try something, not to mend it."""
PATCHES = ("*.patch", "*.diff", "patch.txt")
WHAT_CHARACTERS = 100
SUBMITTING = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What mini-swe-agent prints to submit."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file."""

    path: str
    text: str | None
    """None: all of it."""
    loose: bool = False
    """Its lines are parts of lines of the file: words of a command."""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One action."""

    number: int
    """From 1, on the way to where the rollout ended."""
    node: NodeId | None
    """The node that it led to."""
    stage: StageName
    what: str
    """For people."""
    ok: bool
    wrote: tuple[Piece, ...] = ()
    used: tuple[Piece, ...] = ()
    """What it replaced or was shown."""

    def as_json(self) -> dict[str, Any]:
        """Without the pieces: the journal has them."""
        return {name: getattr(self, name) for name in ("number", "node", "stage", "what", "ok")}


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps in a row to the same end: to find the place, to see the fault, to mend it, to see whether that helped, to
    hand it in."""

    name: StageName
    steps: tuple[TraceStep, ...]


def trace(action_records: Iterable[ActionRecord]) -> tuple[TraceStep, ...]:
    """The steps, in order. Whatever tries something before a source was edited is to reproduce the fault; afterwards,
    to test the edit."""
    steps: list[TraceStep] = []
    edited = False
    for number, action_record in enumerate(action_records, 1):
        said = read_command(action_record.action.command) if isinstance(action_record.action, Shell) else Command()
        wrote = _wrote(action_record, said)
        stage = _stage(action_record, said, wrote, edited)
        edited = edited or stage == "edit"
        steps.append(
            TraceStep(
                number,
                action_record.node,
                stage,
                _what(action_record),
                action_record.seen.ok,
                wrote,
                _used(action_record, said),
            )
        )
    return tuple(steps)


def stages(steps: Sequence[TraceStep]) -> tuple[Stage, ...]:
    """The steps by stage."""
    return tuple(Stage(name, tuple(run)) for name, run in groupby(steps, key=lambda step: step.stage))


def _stage(action_record: ActionRecord, said: Command, wrote: Sequence[Piece], edited: bool) -> StageName:
    paths = [action_record.path] if isinstance(action_record.action, (Edit, Write)) else [piece.path for piece in wrote]
    trial: StageName = "test" if edited else "reproduce"
    if isinstance(action_record.action, Submit) or (
        isinstance(action_record.action, Shell) and SUBMITTING in action_record.action.command
    ):
        return "submit"
    if paths and all(_any(path, PATCHES) for path in paths):
        return "submit"
    if paths:
        return trial if all(_any(path, TRIALS) for path in paths) else "edit"
    return trial if isinstance(action_record.action, (RunTests, Debug)) or said.tests or said.runs else "locate"


def _any(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(path, pattern) or fnmatch(path.rpartition("/")[2], pattern) for pattern in patterns)


def _wrote(action_record: ActionRecord, said: Command) -> tuple[Piece, ...]:
    """What is in the file because of it, as far as it says so."""
    match action_record.action:
        case Edit() if action_record.seen.ok:
            return tuple(_new(action_record.path, each) for each in action_record.action.replacements)
        case Write() if action_record.seen.ok:
            return (Piece(action_record.path, action_record.action.content),)
        case Shell() if not (action_record.seen.refused or action_record.seen.fork_lost):
            return tuple(Piece(path, said.text or None, loose=said.loose) for path in said.writes)
        case _:
            return ()


def _new(path: str, each: Replacement) -> Piece:
    kept = set(each.old.splitlines())
    new = [line for line in each.new.splitlines() if line not in kept]
    return Piece(path, "\n".join(new) or each.new)


def _used(action_record: ActionRecord, said: Command) -> tuple[Piece, ...]:
    match action_record.action:
        case Edit():
            return tuple(Piece(action_record.path, each.old) for each in action_record.action.replacements)
        case Write():
            return (Piece(action_record.path, None),)
        case View():
            return (Piece(action_record.path, action_record.seen.text),)
        case Search():
            return (Piece("", action_record.seen.text),)
        case Shell():
            files = dict.fromkeys((*said.reads, *said.writes))
            words = (Piece(path, action_record.action.command, loose=True) for path in said.writes)
            shown = (Piece(path, None if path in said.replaces else action_record.seen.text) for path in files)
            return (*words, *shown)
        case RunTests() | Debug() | Submit() | Invalid():
            return ()
        case _:
            assert_never(action_record.action)


def _what(action_record: ActionRecord) -> str:
    match action_record.action:
        case Edit() | Write():
            return f"{action_record.action.kind} {action_record.path}{'' if action_record.seen.ok else ' (refused)'}"
        case View():
            lines = (
                f":{action_record.action.start}-{action_record.action.end or ''}"
                if action_record.action.end or action_record.action.start > 1
                else ""
            )
            return f"view {action_record.path}{lines}"
        case Search():
            return f"search {action_record.action.pattern} in {action_record.path}"
        case RunTests():
            return f"run {', '.join(action_record.action.tests) or 'all tests'}"
        case Debug():
            return f"debug {action_record.action.test}"
        case Submit():
            return "submit"
        case Invalid():
            return f"{action_record.action.name} (could not be read)"
        case Shell():
            line = " ".join(action_record.action.command.split())
            return line if len(line) <= WHAT_CHARACTERS else f"{line[:WHAT_CHARACTERS]} [...]"
        case _:
            assert_never(action_record.action)
