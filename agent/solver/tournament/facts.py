"""What is known of a candidate without asking anybody, and the rules that decide where nothing else does.

Law: no vote is held across unequal facts, and no opinion of a model is a fact.
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
    """What tests say. Of two the greater is better: what stands first decides first. What the guard has a reason
    against does not come so far (`agent.solver.candidates.CandidatePool.stands`)."""

    valid: bool
    """Its tests gave a result."""
    solved: bool
    progress: float
    """The share of the goal tests that pass, in [0, 1], as `agent.evaluate.value.tests` counts them."""
    unharmed: float
    """1 where it breaks no test, else less (`harm` of `agent.evaluate.value.tests`)."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate, for all that offer the same patch."""

    candidate: Candidate
    facts: Facts
    same: tuple[NodeId, ...] = ()
    """The states of the others, without repeats."""
    rollouts: int = 1
    """How many rollouts came to this patch."""

    @property
    def node(self) -> NodeId:
        """What a ballot names."""
        return self.candidate.node

    @property
    def merit(self) -> Merit:
        """What decides among equals where there is no vote, or where votes are level. The greater is better: its own
        test reproduces the issue; more rollouts came to the same patch; the patch is shorter; the state is older."""
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
    """One for each patch, in the order in which the patches come first. Of those that offer the same bytes the one with
    the best facts stands for all, the oldest among equals."""
    offering: defaultdict[bytes, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        offering[candidate.patch].append(candidate)
    return [_entrant(those) for those in offering.values()]


def _entrant(offering: Sequence[Candidate]) -> Entrant:
    best = max(offering, key=lambda each: (facts(each), -each.node))
    same = dict.fromkeys(each.node for each in offering if each.node != best.node)
    return Entrant(best, facts(best), tuple(same), len(offering))
