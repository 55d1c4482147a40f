"""Gates: decide whether another round of rollouts is worth its price, and why.

Easy tasks are left to the vote, and hard ones are refined as long as the best patch gets better: the rules of MAgICoRe
and ToolACE-R, applied to facts if there are any. If no goal is known, a submitted patch counts as a solution if it
breaks nothing, or if it declares every test that it breaks and a critic accepted it. If all patches solve the task, it
is hard if the best one fails a test that another one adds, or if the votes contradict each other; votes that
unanimously call the last two equally good do not. Our own choice: a round that is no better is also followed by another
if it fixes a test that no earlier round fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.run.grade import Grade
from agent.run.tree.node import NodeId
from agent.solver.tournament import Ranking
from agent.solver.tournament.facts import Entrant

CLEAR = 0.75
"""The confidence (`Ranking.confidence`) from which the votes count as a clear choice."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a round follows, and why, for people."""

    refine: bool
    why: str


def gate_key(number: int) -> str:
    """The key of the note at the root that holds the `Decision` after a round."""
    return f"gate/{number}"


def needed(ranking: Ranking, number: int, first: NodeId, *, gate: bool = True, until_solved: bool = False) -> Decision:
    """Decide whether another round follows round `number`, from 1, whose first node is `first`, given the ranking of
    all candidates so far. Without a `gate`, another one always follows; with `until_solved`, another one follows as
    long as no patch solves the task."""
    if not gate:
        return Decision(True, "the gate is off: every round that was asked for is run")
    solved = [entrant for entrant in ranking.order if _solves(entrant)]
    unsolved = until_solved and not solved
    earlier = [entrant for entrant in ranking.order if entrant.node < first]
    new = [entrant for entrant in ranking.order if entrant.node >= first]
    if number > 1 and not (unsolved or _better(new, earlier) or _fixed(new) - _fixed(earlier)):
        return Decision(False, f"round {number} found no better patch than earlier rounds, and fixed no other test")
    if not solved:
        return Decision(True, "hard: no patch solves the task")
    return _among(solved, ranking)


def _solves(entrant: Entrant) -> bool:
    grade = entrant.facts.grade
    return grade >= Grade.SUBMITTED or (grade is Grade.DECLARED and entrant.accepted)


def _better(new: Sequence[Entrant], earlier: Sequence[Entrant]) -> bool:
    """Whether the best new patch has better facts than all earlier ones. A patch that an earlier round found is not
    new, even if a rollout of this round continued from it."""
    best = max((entrant.facts for entrant in new), default=None)
    return best is not None and all(best > entrant.facts for entrant in earlier)


def _fixed(entrants: Sequence[Entrant]) -> set[str]:
    """Return the tests that any of the patches fixes. A later round can combine the fixes of several patches."""
    return {test for entrant in entrants for test in entrant.candidate.summary.tests_passed}


def _among(solved: list[Entrant], ranking: Ranking) -> Decision:
    if len(solved) == 1:
        rollouts = solved[0].rollouts
        agree = f"{rollouts} rollouts agree on the one patch" if rollouts > 1 else "one patch"
        return Decision(False, f"easy: {agree} that solves the task")
    if (passed := ranking.checked.get(solved[0].node, 1.0)) < 1:
        return Decision(
            True, f"hard: the best patch fails {1 - passed:.0%} of the tests that other patches bring and pass"
        )
    if (confidence := ranking.confidence()) is None:
        return Decision(False, f"easy: {len(solved)} patches solve the task, and no judge is asked which is the best")
    if ranking.tied:
        return Decision(
            False, f"easy: {len(solved)} patches solve the task, and no judge finds one better than the other"
        )
    votes = f"{len(solved)} patches solve the task, and the votes"
    if confidence >= CLEAR:
        return Decision(False, f"easy: {votes} have chosen one (confidence {confidence:.2f})")
    return Decision(True, f"hard: {votes} have not chosen one (confidence {confidence:.2f})")
