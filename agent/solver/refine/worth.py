"""Worth: what each wave of a run came to and what it cost, and how often a refinement kept what was right or mended
what was wrong.

Telling the two apart is the decomposition of "Confidence v.s. Critique"; cost stands beside gain, as in CorrectBench.
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

__all__ = ["Changes", "Wave", "changes", "waves"]


@dataclass(frozen=True, slots=True)
class Wave:
    """One wave of rollouts, by the states that were made in it and those that it came to again. What was spent to
    compare what it came to counts as its own."""

    number: int
    """From 1."""
    rollouts: int
    solved: bool
    """Whether one of its states solves the task, by its verification or, without one, by the visible tests."""
    value: float
    """The highest of its states, in [0, 1]; 0 where it has none."""
    patch_sha256: str
    """Of the best of its states, where its patch was verified; else empty."""
    usage: Usage
    seconds: float
    expansions: int = 0
    repeats: int = 0
    """Of those, the ones that led to a state that was known."""

    def to_json(self) -> dict[str, Any]:
        """Plain data. `cost_usd` is null when a call's price is unknown."""
        usage = self.usage
        return {
            "wave": self.number,
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
class Changes:
    """Refinements by whether the answer was right before and is right after. The four add up to all of them."""

    kept: int = 0
    """Right, and still right."""
    lost: int = 0
    """Right, and no longer."""
    fixed: int = 0
    """Wrong, and now right."""
    missed: int = 0
    """Wrong, and still wrong."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[bool, bool]]) -> Changes:
        """From whether each was right before and is right after."""
        counted = [0, 0, 0, 0]
        for before, after in pairs:
            counted[2 * (not before) + (not after)] += 1
        return cls(*counted)

    @property
    def total(self) -> int:
        """All of them."""
        return self.kept + self.lost + self.fixed + self.missed

    @property
    def kept_right(self) -> float | None:
        """Of those that were right, the share that stayed so; None: none was."""
        return _share(self.kept, self.lost)

    @property
    def fixed_wrong(self) -> float | None:
        """Of those that were wrong, the share that became right; None: none was."""
        return _share(self.fixed, self.missed)

    def __str__(self) -> str:
        right, wrong = self.kept + self.lost, self.fixed + self.missed
        return f"kept right {self.kept} of {right}, fixed wrong {self.fixed} of {wrong}"

    def to_json(self) -> dict[str, Any]:
        """The counts and the two rates."""
        counts = {"kept": self.kept, "lost": self.lost, "fixed": self.fixed, "missed": self.missed}
        return {**counts, "kept_right": self.kept_right, "fixed_wrong": self.fixed_wrong}


def changes(grown: Sequence[Wave]) -> Changes:
    """Of each wave after the first: whether the task had been solved before it, and whether it solves the task by
    itself. The run's answer is the best of all waves, which is never worse than before."""
    solved = accumulate((wave.solved for wave in grown), max)
    return Changes.of(zip(solved, (wave.solved for wave in grown[1:]), strict=False))


def waves(run: Run) -> list[Wave]:
    """The waves of a run so far, in order."""
    marks = [Mark(), *run.marks, run.mark]
    starts = [*run.starts, len(run.tree)]
    finished = Counter(rollout.round for rollout in run.rollouts())
    return [
        _wave(run, number, finished[number], range(*states), spent)
        for number, (states, spent) in enumerate(zip(pairwise(starts), pairwise(marks), strict=True), 1)
    ]


def _wave(run: Run, number: int, rollouts: int, made: range, spent: tuple[Mark, Mark]) -> Wave:
    begin, end = spent
    states = [*made, *run.repeated[begin.repeats : end.repeats]]
    best = max(states, key=lambda node: _worth(run, node), default=None)
    verdict = {} if best is None else run.verdict(best) or {}
    return Wave(
        number,
        rollouts,
        best is not None and _worth(run, best)[0],
        0.0 if best is None else run.tree[best].value,
        verdict.get("patch", ""),
        end.usage - begin.usage,
        end.elapsed_s - begin.elapsed_s,
        end.expansions - begin.expansions,
        end.repeats - begin.repeats,
    )


def _worth(run: Run, node: NodeId) -> tuple[bool, float, int]:
    """What is compared: solved or not, the value, the age."""
    verdict = run.verdict(node)
    solved = run.tree[node].evaluation.solved if verdict is None else bool(verdict["solved"])
    return solved, run.tree[node].value, -node


def _share(of: int, rest: int) -> float | None:
    return of / (of + rest) if of + rest else None
