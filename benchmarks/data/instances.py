"""Instance = Task + Hidden: the work, and what only the grader may know about it.

Law: a `Hidden` never reaches a solver. `agent` cannot import this module; what a solver is given is `Instance.task`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agent.errors import RamifyError, UsageError
from agent.task import Task
from sandboxes import Workspace

__all__ = ["EvalType", "Hidden", "Instance", "InstanceBroken", "Mode", "Reader", "select"]

Mode = Literal["hidden", "revealed"]
"""Whether a solver sees the failing tests (`revealed`: CI mode, as on a red build) or the statement alone."""

EvalType = Literal["pass_and_fail", "fail_only"]
"""How a log is read: a test has passed where the log says so, or (`fail_only`) where it does not say that it failed."""


class InstanceBroken(RamifyError):
    """The set does not hold together: no such repository or commit, a test patch that does not apply."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A set's own program for the logs of its tests. It is run where neither a patch nor a test has been."""

    script: str
    """Bash that prints, as JSON, what the logs say of each test."""
    logs: tuple[str, ...]
    """Files that the tests leave and the script finds, by their paths."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """What decides whether an instance is resolved. Kept out of every repr, and so out of logs."""

    fail_to_pass: tuple[str, ...] = field(repr=False)
    pass_to_pass: tuple[str, ...] = field(repr=False)
    patch: bytes = field(repr=False)
    """The reference solution."""
    test_patch: bytes = field(repr=False)
    """The changes to tests that came with it; may be empty."""
    solution: str = field(default="", repr=False)
    """A shell command that makes the reference solution, where the set has no patch of it; empty: see `patch`."""
    test_command: str = field(default="", repr=False)
    """A shell command that runs the hidden tests, and may run no others; empty: the task's own."""
    eval_script: str = field(default="", repr=False)
    """Bash that puts the hidden tests in and runs them, its output between the markers of SWE-bench; empty: there is
    none, and the test patch and the command are what is run."""
    patch_file: str = field(default="", repr=False)
    """Where the script finds the patch, which it applies by itself; empty: the patch is applied before."""
    text_only: bool = field(default=False, repr=False)
    """What a patch changes in binary files is left out, as the set's own harness does it."""
    assets: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Files that the script needs and no patch carries: the path in the repository, and the address."""
    eval_type: EvalType = field(default="pass_and_fail", repr=False)
    log_parser: str = field(default="", repr=False)
    """What reads the output of the tests: a name of SWE-bench's (`parse_log_pytest`) or of `agent.measure.logs`; empty:
    the runner is asked."""
    reader: Reader | None = field(default=None, repr=False)
    """What reads the tests' logs before `log_parser` reads what it prints; None: the script's output is the log."""
    outcomes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How every test has to end, exactly (`PASSED`, `FAILED`, `ERROR`), by its class and name (`TestCalc.test_add`),
    where the set says that of all; else empty."""
    workspace: Workspace | None = field(default=None, repr=False)
    """What grading begins with; None: what the solver did. Another one where the image holds the hidden tests, which
    are taken away before a solver sees it."""
    row: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The row as its set has it, for graders that read the set's own format; empty: it is no row."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One piece of work with a known answer."""

    task: Task
    hidden: Hidden
    mode: Mode = "hidden"
    repo: str = ""
    """`owner/name`; empty: unknown."""
    version: str = ""
    """Of the repository, as the set has it (`4.3`)."""
    language: str = "python"
    """Of the tests, in small letters; empty: the set does not say."""
    fault: str = ""
    """Why its row cannot be used: it is then named wherever instances are, no search is begun for it, and it is not
    graded; empty: it can."""

    @property
    def id(self) -> str:
        """Unique in its source; names its folder in a batch."""
        return self.task.id

    def to_solve(self) -> Instance:
        """The same without what only grading needs; the test patch stays, which checkouts with revealed tests are
        made with."""
        return replace(self, hidden=Hidden((), (), b"", self.hidden.test_patch))


def select(
    instances: Iterable[Instance],
    *,
    ids: Sequence[str] = (),
    pattern: str = "",
    part: str = "",
    shuffle: int | None = None,
) -> list[Instance]:
    """Those with one of `ids` in whose id the regular expression matches, in the order that the seed `shuffle` gives
    them (None: their own), then the slice `part` (`0:10`) of them.

    Raises:
        UsageError: an id that does not exist, not a regular expression, not a slice, or nothing left.
    """
    chosen = list(instances)
    if unknown := sorted(set(ids) - {i.id for i in chosen}):
        raise UsageError(f"no instance {unknown[0]!r} in this source")
    try:
        matcher = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--filter {pattern!r} is not a regular expression: {error}") from error
    chosen = [i for i in chosen if (not ids or i.id in ids) and matcher.search(i.id)]
    if shuffle is not None:
        chosen.sort(key=lambda each: _lot(shuffle, each.id))
    chosen = chosen[_slice(part)]
    if not chosen:
        raise UsageError("no instance is left by --ids, --filter and --slice")
    return chosen


def _lot(seed: int, instance_id: str) -> bytes:
    """Its place in a shuffled order. It hangs on nothing else, so that a set that grows keeps the order of the rest."""
    return hashlib.sha256(f"{seed} {instance_id}".encode("utf-8", "surrogateescape")).digest()


def _slice(text: str) -> slice:
    try:
        found = slice(*(int(bound) if bound else None for bound in text.split(":"))) if text else slice(None)
        found.indices(0)  # refuses a step of 0
        return found
    except (ValueError, TypeError) as error:
        raise UsageError(f"--slice {text!r} is not like 0:10") from error
