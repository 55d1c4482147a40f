"""An instance: a task, and what only the grader may know about it.

Invariant: a `Hidden` never reaches a solver. `agent` cannot import this module; a solver gets `Instance.task`.
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

Mode = Literal["hidden", "revealed"]
"""Whether a solver sees the failing tests (`revealed`: CI mode, as on a red build) or only the statement."""

EvalType = Literal["pass_and_fail", "fail_only"]
"""How a log is read: a test has passed if the log says so, or (`fail_only`) if the log does not say that it failed."""


class InstanceBroken(RamifyError):
    """The set is inconsistent: a repository or commit does not exist, or a test patch does not apply."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A set's own program for the logs of its tests. It runs in a sandbox where neither a patch nor a test has run."""

    script: str
    """Bash that prints the outcome of each test as JSON."""
    logs: tuple[str, ...]
    """Paths of the files that the tests leave and the script reads."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """What decides whether an instance is resolved. Left out of every repr, and so out of logs."""

    fail_to_pass: tuple[str, ...] = field(repr=False)
    pass_to_pass: tuple[str, ...] = field(repr=False)
    patch: bytes = field(repr=False)
    """The reference solution."""
    test_patch: bytes = field(repr=False)
    """The reference changes to tests; may be empty."""
    solution: str = field(default="", repr=False)
    """A shell command that makes the reference solution, if the set has no patch of it; empty: see `patch`."""
    test_command: str = field(default="", repr=False)
    """A shell command that runs the hidden tests, and possibly only those; empty: the task's own."""
    eval_script: str = field(default="", repr=False)
    """Bash that adds the hidden tests and runs them, with their output between the markers of SWE-bench; empty: the
    test patch is applied and the test command is run."""
    patch_file: str = field(default="", repr=False)
    """Where the script finds the patch, which it applies itself; empty: the patch is applied before."""
    text_only: bool = field(default=False, repr=False)
    """Whether a patch's changes to binary files are left out, as the set's own harness does."""
    assets: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Files that the script needs and that no patch contains: their paths in the repository, and their addresses."""
    eval_type: EvalType = field(default="pass_and_fail", repr=False)
    log_parser: str = field(default="", repr=False)
    """The parser of the tests' output, by its name in SWE-bench (`parse_log_pytest`) or in `agent.measure.logs`; empty:
    the test runner reports the outcomes."""
    reader: Reader | None = field(default=None, repr=False)
    """The program that reads the tests' logs and prints what `log_parser` reads; None: the script's output is the
    log."""
    outcomes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The exact outcome that each test must have (`PASSED`, `FAILED`, `ERROR`), by its class and name
    (`TestCalc.test_add`), if the set gives it for all tests; else empty."""
    workspace: Workspace | None = field(default=None, repr=False)
    """The workspace that grading begins with; None: the task's. It differs if the image holds the hidden tests, which
    are removed before a solver sees it."""
    row: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The row in the format of its set, for graders that read that; empty: the instance has no row."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A task with a known answer."""

    task: Task
    hidden: Hidden
    mode: Mode = "hidden"
    repo: str = ""
    """`owner/name`; empty: unknown."""
    version: str = ""
    """The version of the repository, as the set has it (`4.3`)."""
    language: str = "python"
    """The language of the tests, in lower case; empty: the set does not say."""
    fault: str = ""
    """Why the row cannot be used, with its file and line; empty if it can. A batch with such an instance does not
    start."""

    @property
    def id(self) -> str:
        """The id, unique in its source. The folder of the instance in a batch has this name."""
        return self.task.id

    def to_solve(self) -> Instance:
        """The instance without what only grading needs. The test patch stays: checkouts with revealed tests are made
        with it."""
        return replace(self, hidden=Hidden((), (), b"", self.hidden.test_patch))


def select(
    instances: Iterable[Instance],
    *,
    ids: Sequence[str] = (),
    pattern: str = "",
    part: str = "",
    shuffle: int | None = None,
) -> list[Instance]:
    """The instances with one of `ids` (if any are given) whose id matches the regular expression, shuffled by the seed
    `shuffle` (None: in their own order), and then only the slice `part` (`0:10`) of them.

    Raises:
        UsageError: an id does not exist, the regular expression or the slice is malformed, or no instance is left.
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
        chosen.sort(key=lambda i: _lot(shuffle, i.id))
    chosen = chosen[_slice(part)]
    if not chosen:
        raise UsageError("--ids, --filter and --slice together select no instance: relax one of them")
    return chosen


def _lot(seed: int, instance_id: str) -> bytes:
    """The sort key of an instance in a shuffled order. It depends on nothing else, so that a set that grows keeps the
    order of the rest."""
    return hashlib.sha256(f"{seed} {instance_id}".encode("utf-8", "surrogateescape")).digest()


def _slice(text: str) -> slice:
    try:
        part = slice(*(int(bound) if bound else None for bound in text.split(":"))) if text else slice(None)
        part.indices(0)  # refuses a step of 0
        return part
    except (ValueError, TypeError) as error:
        raise UsageError(f"--slice {text!r} is not a range: write A:B, such as 0:10") from error
