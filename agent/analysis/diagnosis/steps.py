"""Steps: what a rollout did, action by action, by stage, with the pieces of files that each wrote and saw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import groupby
from typing import Any, Literal, assert_never

from agent.actions import Debug, Edit, Invalid, Replacement, RunTests, Search, Shell, Submit, View, Write
from agent.analysis.diagnosis.commands import Command, read_command
from agent.run.action_log import Deed
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


def trace(deeds: Iterable[Deed]) -> tuple[TraceStep, ...]:
    """The steps, in order. Whatever tries something before a source was edited is to reproduce the fault; afterwards,
    to test the edit."""
    steps: list[TraceStep] = []
    edited = False
    for number, deed in enumerate(deeds, 1):
        said = read_command(deed.action.command) if isinstance(deed.action, Shell) else Command()
        wrote = _wrote(deed, said)
        stage = _stage(deed, said, wrote, edited)
        edited = edited or stage == "edit"
        steps.append(TraceStep(number, deed.node, stage, _what(deed), deed.seen.ok, wrote, _used(deed, said)))
    return tuple(steps)


def stages(steps: Sequence[TraceStep]) -> tuple[Stage, ...]:
    """The steps by stage."""
    return tuple(Stage(name, tuple(run)) for name, run in groupby(steps, key=lambda step: step.stage))


def _stage(deed: Deed, said: Command, wrote: Sequence[Piece], edited: bool) -> StageName:
    paths = [deed.path] if isinstance(deed.action, (Edit, Write)) else [piece.path for piece in wrote]
    trial: StageName = "test" if edited else "reproduce"
    if isinstance(deed.action, Submit) or (isinstance(deed.action, Shell) and SUBMITTING in deed.action.command):
        return "submit"
    if paths and all(_any(path, PATCHES) for path in paths):
        return "submit"
    if paths:
        return trial if all(_any(path, TRIALS) for path in paths) else "edit"
    return trial if isinstance(deed.action, (RunTests, Debug)) or said.tests or said.runs else "locate"


def _any(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(path, pattern) or fnmatch(path.rpartition("/")[2], pattern) for pattern in patterns)


def _wrote(deed: Deed, said: Command) -> tuple[Piece, ...]:
    """What is in the file because of it, as far as it says so."""
    match deed.action:
        case Edit() if deed.seen.ok:
            return tuple(_new(deed.path, each) for each in deed.action.replacements)
        case Write() if deed.seen.ok:
            return (Piece(deed.path, deed.action.content),)
        case Shell() if not (deed.seen.refused or deed.seen.fork_lost):
            return tuple(Piece(path, said.text or None, loose=said.loose) for path in said.writes)
        case _:
            return ()


def _new(path: str, each: Replacement) -> Piece:
    kept = set(each.old.splitlines())
    new = [line for line in each.new.splitlines() if line not in kept]
    return Piece(path, "\n".join(new) or each.new)


def _used(deed: Deed, said: Command) -> tuple[Piece, ...]:
    match deed.action:
        case Edit():
            return tuple(Piece(deed.path, each.old) for each in deed.action.replacements)
        case Write():
            return (Piece(deed.path, None),)
        case View():
            return (Piece(deed.path, deed.seen.text),)
        case Search():
            return (Piece("", deed.seen.text),)
        case Shell():
            files = dict.fromkeys((*said.reads, *said.writes))
            words = (Piece(path, deed.action.command, loose=True) for path in said.writes)
            shown = (Piece(path, None if path in said.replaces else deed.seen.text) for path in files)
            return (*words, *shown)
        case RunTests() | Debug() | Submit() | Invalid():
            return ()
        case _:
            assert_never(deed.action)


def _what(deed: Deed) -> str:
    match deed.action:
        case Edit() | Write():
            return f"{deed.action.kind} {deed.path}{'' if deed.seen.ok else ' (refused)'}"
        case View():
            lines = f":{deed.action.start}-{deed.action.end or ''}" if deed.action.end or deed.action.start > 1 else ""
            return f"view {deed.path}{lines}"
        case Search():
            return f"search {deed.action.pattern} in {deed.path}"
        case RunTests():
            return f"run {', '.join(deed.action.tests) or 'all tests'}"
        case Debug():
            return f"debug {deed.action.test}"
        case Submit():
            return "submit"
        case Invalid():
            return f"{deed.action.name} (could not be read)"
        case Shell():
            line = " ".join(deed.action.command.split())
            return line if len(line) <= WHAT_CHARACTERS else f"{line[:WHAT_CHARACTERS]} [...]"
        case _:
            assert_never(deed.action)
