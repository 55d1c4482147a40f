"""The result of a run, as `solve` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent.budget import Stop, Usage
from agent.run.grade import Grade, Status
from agent.run.spending import Activity
from sandboxes import Forked

if TYPE_CHECKING:
    from agent.solver.refine.round_results import RoundResult


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run."""

    status: Status
    """`solved`: the goal tests pass and nothing broke. `submitted`: no goal is known, or the goal tests pass; the patch
    was submitted and breaks nothing, or nothing but the tests in `declared`. `improved`: a patch that is not finished,
    or breaks tests that nobody declared. `no_patch`: none of these."""
    patch: bytes
    """A git patch against the workspace as it was given; empty for `no_patch`."""
    verified: bool
    """The patch was applied to the root state in a fresh fork, and the tests confirmed `status`."""
    stop: Stop
    """Why the search ended."""
    usage: Usage
    best_node: int | None
    """The state whose patch this is; None for `no_patch`."""
    run_dir: Path
    """The directory with the journal, the patch and the states."""
    nodes: int
    """States, the root included."""
    seconds: float
    """How long the search took, over all sessions."""
    baseline: Mapping[str, int]
    """Tests `passed` and `failed` before any edit."""
    final: Mapping[str, int]
    """Tests `passed` and `failed` with the patch."""
    scope: str = ""
    """Which tests the verification rests on, if not all: how many of how many, which, and why no others. If the patch
    was not verified: which tests were run with it."""
    first_run_s: float = 0.0
    """Seconds of the first test run."""
    rollouts: int = 1
    """The number of paths from the root to a leaf of the tree."""
    rounds: int = 1
    """How many rounds of rollouts were started."""
    grade: Grade = Grade.NONE
    """How good the patch is, in finer steps than `status`."""
    broken: tuple[str, ...] = ()
    """Tests that passed before and fail with the patch, the declared ones included."""
    declared: Mapping[str, str] = field(default_factory=dict)
    """Those broken tests that the submission declares to contradict the issue, each with its reason."""
    reproduced_by: tuple[str, ...] = ()
    """Tests that the patch adds, which fail without its change and pass with it."""
    spent: Mapping[Activity, Usage] = field(default_factory=dict)
    """`usage` divided by its purpose."""
    lines: tuple[Usage, ...] = ()
    """The usage of model calls by each rollout. States that several rollouts share count for the first."""
    lines_s: tuple[float | None, ...] = ()
    """The seconds of each rollout, divided in the same way; None if they are unknown because an earlier version wrote
    the journal."""
    round_results: tuple[RoundResult, ...] = ()
    """The results and costs of the rounds; empty if there was only one."""
    notes: tuple[str, ...] = ()
    """What users should know, such as flaky tests that were set aside or a dirty checkout."""
    flagged: int = 0
    """States that were refused for tampering with the tests."""
    forked: Forked = field(default=Forked(), compare=False)
    """How often states were forked and, with `sandbox.paranoid`, how often a fork differed from its snapshot."""
    error: Exception | None = field(default=None, compare=False)
    """The error that ended the search early, if one did."""

    @property
    def resolved(self) -> bool:
        """Whether the patch can be applied without further review: it is solved, or was submitted and broke nothing."""
        return self.grade in (Grade.SOLVED, Grade.SUBMITTED)
