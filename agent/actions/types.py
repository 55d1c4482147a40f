"""The Action union: what a policy may do, and the Observation that it gets for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

__all__ = [
    "Action",
    "Debug",
    "Edit",
    "Effect",
    "Invalid",
    "Observation",
    "Replacement",
    "RunTests",
    "Search",
    "Shell",
    "Submit",
    "View",
    "Write",
]


class Effect(Enum):
    """How far an action can reach."""

    READ_ONLY = "read-only"
    WORKSPACE = "workspace"
    MACHINE = "machine"
    IRREVERSIBLE = "irreversible"


@dataclass(frozen=True, slots=True)
class Shell:
    """Run a shell command in the workspace."""

    command: str
    timeout_s: float = 60.0
    kind: Literal["shell"] = "shell"


@dataclass(frozen=True, slots=True)
class Replacement:
    """A text of a file, and the text to stand in its place."""

    old: str
    new: str
    replace_all: bool = False
    """Every occurrence is replaced; otherwise there must be exactly one."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace one occurrence of `old` in a file by `new`; with an empty `old`, insert the lines `new` before `line`, or
    create the file (`agent.actions.replacing`)."""

    path: str
    old: str
    new: str
    line: int | None = None
    """1-based line at which the occurrence begins, or that the first inserted line becomes. None: `old` must occur
    exactly once; an empty one creates the file, which must not exist."""
    replace_all: bool = False
    more: tuple[Replacement, ...] = ()
    """Made after it, in order, in the same file. If one of them cannot be made, none is."""
    kind: Literal["edit"] = "edit"

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """All that it replaces, in order."""
        return (Replacement(self.old, self.new, self.replace_all), *self.more)


@dataclass(frozen=True, slots=True)
class Write:
    """Create a file or replace it whole."""

    path: str
    content: str
    kind: Literal["write"] = "write"


@dataclass(frozen=True, slots=True)
class RunTests:
    """Run the task's tests; no ids: all of them."""

    tests: tuple[str, ...] = ()
    kind: Literal["run_tests"] = "run_tests"


@dataclass(frozen=True, slots=True)
class Debug:
    """Run one test in a copy of the present state and show the values that it comes across; nothing is changed."""

    test: str
    probes: tuple[str, ...] = ()
    """Each `PATH:LINE`, `PATH:LINE: EXPRESSION` or the name of a function (`agent.measure.probing.probes`); none:
    whatever the test calls."""
    kind: Literal["debug"] = "debug"


@dataclass(frozen=True, slots=True)
class View:
    """Show a file's lines `start` to `end` (1-based, inclusive; 0: to the end), or a directory."""

    path: str
    start: int = 1
    end: int = 0
    kind: Literal["view"] = "view"


@dataclass(frozen=True, slots=True)
class Search:
    """Show the lines that match a regular expression below a path."""

    pattern: str
    path: str = "."
    kind: Literal["search"] = "search"


@dataclass(frozen=True, slots=True)
class Submit:
    """Say that the work is done: the node is not expanded further."""

    message: str = ""
    contradicted: tuple[str, ...] = ()
    """Tests that the change breaks because they assert what the issue calls wrong, each as `TEST_ID: reason`."""
    kind: Literal["submit"] = "submit"


@dataclass(frozen=True, slots=True)
class Invalid:
    """A call that could not be read. It does nothing, and is answered with what is wrong with it."""

    name: str
    arguments: str
    """As they were given, as far as they can be shown."""
    problem: str
    """What is wrong, and how to correct it."""
    kind: Literal["invalid"] = "invalid"


Action = Shell | Edit | Write | RunTests | Debug | View | Search | Submit | Invalid


@dataclass(frozen=True, slots=True)
class Observation:
    """What the policy is told of an action."""

    text: str
    ok: bool = True
    elided_bytes: int = 0
    """How much of the text was cut out of its middle."""
    fork_lost: bool = False
    """A time-out threw the sandbox's fork away, with all that was done in it since its last snapshot."""
    refused: bool = False
    """The action was not begun, because what it does cannot be taken back."""
    blob: str = ""
    """Of a text that was cut: the journal's blob that holds all of it, as far as the sandbox kept it."""
