"""What the tests say about a candidate, and the rules that break ties.

Law: no vote is held between candidates with unequal facts, and no opinion of a model is a fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from agent.run.rollouts import Candidate
from agent.run.tree.tree import NodeId

__all__ = ["Entrant", "Facts", "Merit", "distinct", "facts"]

Merit = tuple[float, int, int, NodeId]


@dataclass(frozen=True, slots=True, order=True)
class Facts:
    """What the tests say, compared field by field; the greater is better. Patches that the guard refuses are left out
    before (`agent.solver.candidates.CandidatePool.stands`)."""

    valid: bool
    """Whether the tests gave a result."""
    solved: bool
    progress: float
    """The share of the goal tests that pass, in [0, 1], as `agent.evaluate.value.tests` counts them."""
    unharmed: float
    """1 if no test broke, else less (`harm` of `agent.evaluate.value.tests`)."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate, representing all that offer the same patch."""

    candidate: Candidate
    facts: Facts
    same: tuple[NodeId, ...] = ()
    """The nodes of the others, without repeats."""
    rollouts: int = 1
    """How many rollouts offer this patch."""

    @property
    def node(self) -> NodeId:
        """The node that ballots name."""
        return self.candidate.node

    @property
    def merit(self) -> Merit:
        """Orders candidates with equal facts where there is no vote or votes are tied. The greater is better: the
        candidate's own test reproduces the issue; more rollouts offer the patch; the patch is shorter; the state is
        older."""
        return float(self.candidate.evaluation.reproduces), self.rollouts, -len(self.candidate.patch), -self.node


def facts(candidate: Candidate) -> Facts:
    """The facts about a candidate."""
    return Facts(
        valid=candidate.summary.outcome != "invalid",
        solved=candidate.evaluation.solved,
        progress=candidate.evaluation.progress,
        unharmed=1.0 - candidate.evaluation.harm,
    )


def distinct(candidates: Sequence[Candidate]) -> list[Entrant]:
    """An entrant for each distinct patch, in the order of first appearance. Among candidates with the same patch the
    one with the best facts represents all of them, the oldest if several have these facts."""
    offering: defaultdict[bytes, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        offering[candidate.patch].append(candidate)
    return [_entrant(same_patch) for same_patch in offering.values()]


def _entrant(offering: Sequence[Candidate]) -> Entrant:
    best = max(offering, key=lambda candidate: (facts(candidate), -candidate.node))
    same = dict.fromkeys(candidate.node for candidate in offering if candidate.node != best.node)
    return Entrant(best, facts(best), tuple(same), len(offering))
