"""Items sorted by their scores, and the reason why the first of them was selected."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence

from agent.run.tree.choice import Reason
from agent.run.tree.node import NodeId


def why_first(best: Sequence[NodeId], terms: Callable[[NodeId], Mapping[str, float]], among: int) -> Reason:
    """Return the reason why the first of these nodes, sorted best first, was selected: its terms, and the second node
    as its rival if there is one."""
    rival = best[1] if len(best) > 1 else None
    return Reason(best[0], terms(best[0]), among, rival, None if rival is None else terms(rival))


class Ranking:
    """Items sorted by score, the highest first; among equals the smaller item comes first."""

    def __init__(self) -> None:
        self._scores: dict[int, float] = {}
        self._sorted: list[tuple[float, int]] = []
        """Pairs of a negative score and an item."""

    def __len__(self) -> int:
        return len(self._sorted)

    def put(self, item: int, score: float | None) -> None:
        """Rank an item by this score from now on; None removes it."""
        if (old := self._scores.pop(item, None)) is not None:
            del self._sorted[bisect_left(self._sorted, (-old, item))]
        if score is not None:
            self._scores[item] = score
            insort(self._sorted, (-score, item))

    def best(self, most: int = 2) -> list[tuple[float, int]]:
        """Return up to `most` of the best items, with their scores."""
        return [(-negative, item) for negative, item in self._sorted[:most]]
