"""Gates: whether one more wave of rollouts is worth its price, and why.

Easy tasks are left to the vote and hard ones are refined, as long as the best, scored anew, gets better: the rules of
MAgICoRe and ToolACE-R, on facts where there are any. Only among patches that all solve the task do votes say how hard
it is. A round that is no better but fixes a test that no earlier round fixed is continued as well: that is our own
choice.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.run.tree.tree import NodeId
from agent.solver.tournament import Ranking
from agent.solver.tournament.facts import Entrant

__all__ = ["CLEAR", "Decision", "gate_key", "needed"]

CLEAR = 0.75
"""The confidence (`Ranking.confidence`) from which on votes have chosen."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a wave is to follow, and why, for people."""

    refine: bool
    why: str


def gate_key(wave: int) -> str:
    """Of the note on the base state that holds the decision after a wave, as a `Decision`."""
    return f"gate/{wave}"


def needed(ranking: Ranking, wave: int, first: NodeId, *, gate: bool = True, until_solved: bool = False) -> Decision:
    """Whether a wave is to follow the one of this number, from 1, whose first state is `first`, given all candidates so
    far. Without a `gate` one always is, and with `until_solved` as long as no patch solves the task."""
    if not gate:
        return Decision(True, "every wave that was asked for is grown")
    solved = [each for each in ranking.order if each.facts.solved]
    goes_on = until_solved and not solved
    if wave > 1 and not (goes_on or _better(ranking, first) or _mended(ranking, first)):
        return Decision(False, f"wave {wave} has found no better patch than those before it, and mended no other test")
    if not solved:
        return Decision(True, "hard: no patch solves the task")
    return _among(solved, ranking.confidence())


def _better(ranking: Ranking, first: NodeId) -> bool:
    """Whether the wave's best patch is better, by the facts, than all of the waves before. A patch that had been found
    before is that wave's, although a rollout of this one may have gone on from it."""
    facts = {now: [e.facts for e in ranking.order if _is_new(e, first) is now] for now in (True, False)}
    return bool(facts[True]) and (not facts[False] or max(facts[True]) > max(facts[False]))


def _mended(ranking: Ranking, first: NodeId) -> bool:
    """Whether a patch of the wave makes a test pass that none of the waves before does: a next one can join them."""
    mended: dict[bool, set[str]] = {True: set(), False: set()}
    for entrant in ranking.order:
        mended[_is_new(entrant, first)].update(entrant.candidate.summary.tests_passed)
    return not mended[True] <= mended[False]


def _is_new(entrant: Entrant, first: NodeId) -> bool:
    return entrant.node >= first


def _among(solved: list[Entrant], confidence: float | None) -> Decision:
    if len(solved) == 1:
        rollouts = solved[0].rollouts
        agree = f"{rollouts} rollouts agree on the one patch" if rollouts > 1 else "one patch"
        return Decision(False, f"easy: {agree} that solves the task")
    if confidence is None:
        return Decision(False, f"easy: {len(solved)} patches solve the task, and nobody is asked which is the best")
    said = f"{len(solved)} patches solve the task, and the votes"
    if confidence >= CLEAR:
        return Decision(False, f"easy: {said} have chosen one (confidence {confidence:.2f})")
    return Decision(True, f"hard: {said} have not chosen one (confidence {confidence:.2f})")
