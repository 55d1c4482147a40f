"""Result: what a run has come to, for whoever began it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent.budget import Stop, Usage
from agent.run.grade import Grade, Status
from sandboxes import Forked

if TYPE_CHECKING:
    from agent.solver.refine.worth import Wave

__all__ = ["Result", "Status"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a run has come to."""

    status: Status
    """`solved`: the goal tests pass and nothing broke. `submitted`: no goal is known, or the goal tests pass; the patch
    was submitted and breaks nothing, or nothing but the tests in `declared`. `improved`: a patch that is not finished,
    or breaks tests that nobody declared. `no_patch`: none of these."""
    patch: bytes
    """A git patch against the workspace as it was given; empty for `no_patch`."""
    verified: bool
    """The patch was applied to the base state in a fresh fork, and the whole suite said there what `status` says."""
    stop: Stop
    usage: Usage
    best_node: int | None
    run_dir: Path
    nodes: int
    seconds: float
    baseline: Mapping[str, int]
    """Tests `passed` and `failed` before any edit."""
    final: Mapping[str, int]
    """The same with the patch."""
    scope: str = ""
    """On which tests the verification rests, where it is not all: how many of how many, which, and why no more."""
    rollouts: int = 1
    """Ways from the base state to a leaf of the tree."""
    rounds: int = 1
    """Waves of rollouts that were begun."""
    grade: Grade = Grade.NONE
    """How good the patch is, in finer steps than `status`."""
    broken: tuple[str, ...] = ()
    """Tests that passed before and fail with the patch, the declared ones included."""
    declared: Mapping[str, str] = field(default_factory=dict)
    """Those of them of which the submission says why the issue contradicts them, each with the reason."""
    reproduced_by: tuple[str, ...] = ()
    """Tests that the patch adds, which fail without its change and pass with it."""
    waves: tuple[Wave, ...] = ()
    """What each of them came to and cost; none where there was but one."""
    notes: tuple[str, ...] = ()
    """What people should know: flaky tests set aside, a dirty checkout."""
    flagged: int = 0
    """States that were refused as a manipulation of the tests."""
    forked: Forked = field(default=Forked(), compare=False)
    """How often states were forked, and with `sandbox.paranoid`, how often a fork was not what had been frozen."""
    error: Exception | None = field(default=None, compare=False)
    """What ended the search early, if an error did."""

    @property
    def resolved(self) -> bool:
        """Whether the patch may be applied without another look: solved, or submitted and nothing broke."""
        return self.grade in (Grade.SOLVED, Grade.SUBMITTED)
