"""Baselines: what simpler ways to choose would have picked, so that the vote has to earn its keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from agent.run.rollouts import Candidate
from agent.run.tree.tree import NodeId

__all__ = ["OPINIONS", "baselines"]

OPINIONS = ("judge", "debate", "checklist")
"""Parts of an evaluation that are a model's number; the first that there is counts."""


def baselines(candidates: Sequence[Candidate], *, seed: int = 0) -> dict[str, NodeId]:
    """The state that each would have picked, by its name; what cannot pick is left out. All but `random` take of equals
    the one whose rollout finished first.

    `random`: any rollout. `first`: the rollout that finished first. `tests`: the best by its tests alone. `majority`:
    the patch that most rollouts came to. `judge`: what the value's model thinks most of, where it gave numbers.
    """
    if not candidates:
        return {}
    finished = sorted(candidates, key=lambda each: each.rollout.leaf)
    agreeing = Counter(each.patch for each in finished)
    picks = {
        "random": Random(f"{seed}/baseline").choice(finished).node,
        "first": finished[0].node,
        "tests": _most(finished, lambda each: each.evaluation.by_tests).node,
        "majority": _most(finished, lambda each: agreeing[each.patch]).node,
    }
    if judged := [each for each in finished if _opinion(each) is not None]:
        picks["judge"] = _most(judged, lambda each: _opinion(each) or 0.0).node
    return picks


def _most(candidates: Sequence[Candidate], worth: Callable[[Candidate], float]) -> Candidate:
    """The first of the best."""
    return max(candidates, key=worth)


def _opinion(candidate: Candidate) -> float | None:
    parts = candidate.evaluation.parts
    return next((parts[name] for name in OPINIONS if name in parts), None)
