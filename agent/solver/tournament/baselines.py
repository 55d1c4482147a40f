"""Baselines: the picks of simpler ways of choosing, to compare the vote with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from agent.run.rollouts import Candidate
from agent.run.tree.node import NodeId

OPINIONS = ("judge", "debate", "checklist")
"""The parts of an evaluation that are a model's score; the first one present counts."""


def baselines(candidates: Sequence[Candidate], *, seed: int = 0) -> dict[str, NodeId]:
    """Return the state that each baseline would have picked, by the name of the baseline. Ties go to the rollout that
    finished first.

    `random`: any rollout. `first`: the rollout that finished first. `tests`: the best by its tests alone. `majority`:
    the change that most rollouts offer. `judge`: the highest score of the value's model; left out if there is no score.
    """
    if not candidates:
        return {}
    finished = sorted(candidates, key=lambda candidate: candidate.rollout.leaf)
    offers = Counter(candidate.program for candidate in finished)
    picks = {
        "random": Random(f"{seed}/baseline").choice(finished).node,
        "first": finished[0].node,
        "tests": max(finished, key=lambda candidate: candidate.evaluation.by_tests).node,
        "majority": max(finished, key=lambda candidate: offers[candidate.program]).node,
    }
    if judged := [candidate for candidate in finished if _opinion(candidate) is not None]:
        picks["judge"] = max(judged, key=lambda candidate: _opinion(candidate) or 0.0).node
    return picks


def _opinion(candidate: Candidate) -> float | None:
    parts = candidate.evaluation.parts
    return next((parts[name] for name in OPINIONS if name in parts), None)
