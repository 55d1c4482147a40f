"""The result and the cost of each round of a run, and how often refinement kept a right answer or fixed a wrong
one.

Counting the two separately follows the decomposition of "Confidence v.s. Critique"; the cost is reported beside the
gain, as in CorrectBench.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from agent.budget import Usage
from agent.run.run import Mark, Run
from agent.run.tree.node import NodeId


@dataclass(frozen=True, slots=True)
class RoundResult:
    """One round of rollouts: the states that it created or reached again. The cost of comparing its rollouts is
    included."""

    number: int
    """From 1."""
    rollouts: int
    solved: bool
    """Whether one of its states solves the task, by its verification or, without one, by the visible tests."""
    value: float
    """The highest value of its states, in [0, 1]; 0 if it has no state."""
    patch_sha256: str
    """The patch of its best state, if it was verified; else empty."""
    usage: Usage
    seconds: float
    expansions: int = 0
    repeats: int = 0
    """How many expansions led to a known state."""

    def to_json(self) -> dict[str, Any]:
        """The round as plain data. `cost_usd` is null when a call's price is unknown."""
        usage = self.usage
        return {
            "round": self.number,
            "rollouts": self.rollouts,
            "solved": self.solved,
            "value": self.value,
            "patch_sha256": self.patch_sha256,
            "measurements": usage.measurements,
            "model_calls": usage.model_calls,
            "tokens": usage.tokens,
            "cost_usd": None if usage.unpriced_calls else usage.cost_usd,
            "seconds": round(self.seconds, 3),
            "expansions": self.expansions,
            "repeats": self.repeats,
        }


@dataclass(frozen=True, slots=True)
class RefinementCounts:
    """Counts of refinements, by whether the answer was right before and after."""

    kept: int = 0
    """Right before and after."""
    lost: int = 0
    """Right before, wrong after."""
    fixed: int = 0
    """Wrong before, right after."""
    missed: int = 0
    """Wrong before and after."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> RefinementCounts:
        """Count pairs (right before, right after)."""
        counts = Counter(pairs)
        return cls(counts[True, True], counts[True, False], counts[False, True], counts[False, False])

    @property
    def total(self) -> int:
        """The number of refinements."""
        return self.kept + self.lost + self.fixed + self.missed

    @property
    def kept_right(self) -> float | None:
        """The share of right answers that stayed right; None: there was no right answer."""
        return _share(self.kept, self.lost)

    @property
    def fixed_wrong(self) -> float | None:
        """The share of wrong answers that became right; None: there was no wrong answer."""
        return _share(self.fixed, self.missed)

    def __str__(self) -> str:
        right, wrong = self.kept + self.lost, self.fixed + self.missed
        return f"kept right {self.kept} of {right}, fixed wrong {self.fixed} of {wrong}"

    def to_json(self) -> dict[str, Any]:
        """The counts and the two rates."""
        counts = {"kept": self.kept, "lost": self.lost, "fixed": self.fixed, "missed": self.missed}
        return {**counts, "kept_right": self.kept_right, "fixed_wrong": self.fixed_wrong}


def refinement_counts(rounds: Sequence[RoundResult]) -> RefinementCounts:
    """Count, for each round after the first, whether the task was solved before it and whether the round solves it by
    itself. The run's answer is the best of all rounds, which is never worse than before."""
    solved = accumulate((each.solved for each in rounds), max)
    return RefinementCounts.of(zip(solved, (each.solved for each in rounds[1:]), strict=False))


def round_results(run: Run) -> list[RoundResult]:
    """Return the results of the rounds of a run so far, in order."""
    marks = [Mark(), *run.marks, run.mark]
    starts = [*run.starts, len(run.tree)]
    finished = Counter(rollout.round for rollout in run.rollouts())
    return [
        _round(run, number, finished[number], range(*states), spent)
        for number, (states, spent) in enumerate(zip(pairwise(starts), pairwise(marks), strict=True), 1)
    ]


def _round(run: Run, number: int, rollouts: int, created: range, spent: tuple[Mark, Mark]) -> RoundResult:
    begin, end = spent
    states = [*created, *run.repeated[begin.repeats : end.repeats]]
    best = max(states, key=lambda node: _rank(run, node), default=None)
    verdict = {} if best is None else run.verdict(best) or {}
    return RoundResult(
        number,
        rollouts,
        best is not None and _rank(run, best)[0],
        0.0 if best is None else run.tree[best].value,
        verdict.get("patch", ""),
        end.usage - begin.usage,
        end.elapsed_s - begin.elapsed_s,
        end.expansions - begin.expansions,
        end.repeats - begin.repeats,
    )


def _rank(run: Run, node: NodeId) -> tuple[bool, float, int]:
    """Return a sort key, the greater the better: whether the state is solved, its value, its age."""
    verdict = run.verdict(node)
    solved = run.tree[node].evaluation.solved if verdict is None else bool(verdict["solved"])
    return solved, run.tree[node].value, -node


def _share(of: int, rest: int) -> float | None:
    return of / (of + rest) if of + rest else None
