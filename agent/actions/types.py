"""The Action union: what a policy may do, and the Observation that it gets in return."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


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
    """A text in a file, and the text that replaces it."""

    old: str
    new: str
    replace_all: bool = False
    """True: replace every occurrence; False: there must be exactly one."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace one occurrence of `old` in a file by `new`; with an empty `old`, insert the lines `new` before `line`, or
    create the file (`agent.actions.replacing`)."""

    path: str
    old: str
    new: str
    line: int | None = None
    """1-based line at which the occurrence begins, or which the first inserted line becomes. None: `old` must occur
    exactly once; an empty `old` creates the file, which must not exist."""
    replace_all: bool = False
    more: tuple[Replacement, ...] = ()
    """Further replacements in the same file, made in order. Either all of the edit is made, or nothing."""
    kind: Literal["edit"] = "edit"

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """All replacements, in order."""
        return (Replacement(self.old, self.new, self.replace_all), *self.more)

    @property
    def inverse(self) -> Edit:
        """The edit with its texts exchanged. It undoes a single replacement if `new` occurs only once."""
        return Edit(self.path, self.new, self.old, self.line)


@dataclass(frozen=True, slots=True)
class Write:
    """Create a file, or replace all of it."""

    path: str
    content: str
    kind: Literal["write"] = "write"


@dataclass(frozen=True, slots=True)
class RunTests:
    """Run the given tests of the task; without ids, all of them."""

    tests: tuple[str, ...] = ()
    kind: Literal["run_tests"] = "run_tests"


@dataclass(frozen=True, slots=True)
class Debug:
    """Run one test in a copy of the present state and show values from its run; changes nothing."""

    test: str
    probes: tuple[str, ...] = ()
    """`PATH:LINE`, `PATH:LINE: EXPRESSION` or the name of a function (`agent.measure.probing.probes`) each; without
    probes, the last call of every function that the test calls is shown."""
    kind: Literal["debug"] = "debug"


@dataclass(frozen=True, slots=True)
class View:
    """Show lines `start` to `end` of a file (1-based, inclusive; 0: to the end), or list a directory."""

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
    """Declare the work done: the node is not expanded further."""

    message: str = ""
    contradicted: tuple[str, ...] = ()
    """Tests that the change breaks because they assert what the issue calls wrong, each as `TEST_ID: reason`."""
    kind: Literal["submit"] = "submit"


@dataclass(frozen=True, slots=True)
class Invalid:
    """A tool call that could not be parsed. It does nothing; the model is answered with its problem."""

    name: str
    arguments: str
    """The arguments as the model wrote them, cut and escaped for display."""
    problem: str
    """What is wrong with the call, and how to correct it."""
    kind: Literal["invalid"] = "invalid"


Action = Shell | Edit | Write | RunTests | Debug | View | Search | Submit | Invalid


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of an action, as the policy sees it."""

    text: str
    ok: bool = True
    elided_bytes: int = 0
    """How many bytes of the whole output are missing from the text."""
    fork_lost: bool = False
    """A time-out discarded the sandbox's fork, with everything done in it since its last snapshot."""
    refused: bool = False
    """The action was not started, because its effect cannot be taken back."""
    blob: str = ""
    """For a text that was cut: the journal's blob with the full text, as far as the sandbox kept it."""
    unchanged: bool = False
    """A shell command left the state as it was."""
    undo: Edit | None = None
    """The edit that undoes a change of an existing file; None if `Edit.inverse` does, or if it is unknown."""
