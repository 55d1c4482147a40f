"""What the tests say about a candidate, and the rules that break ties.

Invariant: no vote is held between candidates with unequal facts, and no opinion of a model is a fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from agent.run.grade import Grade
from agent.run.rollouts import Candidate
from agent.run.tree.node import NodeId

Merit = tuple[float, int, int, NodeId]


@dataclass(frozen=True, slots=True, order=True)
class Facts:
    """What is certain about a candidate, compared field by field; greater is better. Patches that the guard refuses
    have been excluded before (`agent.solver.candidates.CandidatePool.acceptable`)."""

    valid: bool
    """Whether the tests gave a result."""
    grade: Grade
    progress: float
    """The share of the goal tests that pass, in [0, 1], as `agent.evaluate.value.tests` counts them."""
    unharmed: float
    """1 if no test broke, otherwise less (`harm` of `agent.evaluate.value.tests`)."""

    @property
    def solved(self) -> bool:
        """Whether the goal tests pass and nothing broke."""
        return self.grade is Grade.SOLVED


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate that represents all candidates with the same change of the sources."""

    candidate: Candidate
    facts: Facts
    others: tuple[Candidate, ...] = ()
    """The other candidates that it represents."""

    @property
    def node(self) -> NodeId:
        """The node that ballots name."""
        return self.candidate.node

    @property
    def duplicates(self) -> tuple[NodeId, ...]:
        """The nodes of the others, without repeats."""
        return tuple(dict.fromkeys(other.node for other in self.others if other.node != self.node))

    @property
    def rollouts(self) -> int:
        """How many rollouts offer this change."""
        return 1 + len(self.others)

    @property
    def accepted(self) -> bool:
        """Whether a critic accepts it, and its author declares every test that it breaks."""
        evaluation = self.candidate.evaluation
        return evaluation.accepted or (evaluation.approved and self.facts.grade is Grade.DECLARED)

    @property
    def merit(self) -> Merit:
        """A sort key for candidates with equal facts, used if there is no vote or the votes are tied. Better is a
        candidate whose own test reproduces the issue; then one whose change more rollouts offer; then the shorter
        patch; then the older state."""
        return float(self.candidate.evaluation.reproduces), self.rollouts, -len(self.candidate.patch), -self.node


def facts(candidate: Candidate) -> Facts:
    """The facts about a candidate."""
    return Facts(
        valid=candidate.summary.outcome != "invalid",
        grade=candidate.grade,
        progress=candidate.evaluation.progress,
        unharmed=1.0 - candidate.evaluation.harm,
    )


def distinct(candidates: Sequence[Candidate]) -> list[Entrant]:
    """An entrant for each distinct change of the sources, in the order of first appearance. Among candidates with the
    same change, the one with the best facts represents all of them; then one whose own test reproduces the issue, one
    with a shorter patch, and the oldest."""
    offering: defaultdict[bytes, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        offering[candidate.program].append(candidate)
    return [_entrant(same_change) for same_change in offering.values()]


def _entrant(offering: Sequence[Candidate]) -> Entrant:
    best = max(offering, key=lambda each: (facts(each), each.evaluation.reproduces, -len(each.patch), -each.node))
    return Entrant(best, facts(best), tuple(each for each in offering if each is not best))
