"""Ballots: recorded votes of judges on groups of candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.run.cross_tests import UNTESTED, Matrix
from agent.run.rollouts import Candidate
from agent.run.tree.node import NodeId
from agent.task import Task


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote of one judge on one group."""

    group: tuple[NodeId, ...]
    """The candidates (`agent.run.rollouts.Candidate.node`) in the order in which the judge was shown them."""
    winner: NodeId | None
    """A node of the group; None: the judge abstained, or found none better than the others."""
    reason: str = ""
    judge: str = ""
    """The voter: a model's name, or the rule that decided (`tests`)."""
    vote: int = 0
    """Its ordinal among the votes on this group, from 0."""
    round: int = 1
    """The round whose tournament it belongs to, from 1."""
    tie: bool = False
    """Whether the judge found none better than the others."""


class Judge(Protocol):
    """Votes for one of several candidates. Thread-safe."""

    @property
    def name(self) -> str:
        """The name in ballots."""
        ...

    def requests(self, size: int) -> int:
        """How many model requests one vote on a group of this size takes."""
        ...

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix = UNTESTED) -> Ballot:
        """Vote for one of at least two candidates, which are shown in this order, with the results of their tests. The
        same arguments give the same question.

        Raises:
            agent.budget.BudgetSpent: the question does not fit in what the run may spend.
            agent.errors.RamifyError: as `agent.models.Model.complete`.
        """
        ...
