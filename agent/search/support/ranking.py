"""The best of many items, found without looking at all of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from agent.run.tree.choice import Reason
from agent.run.tree.tree import NodeId

__all__ = ["Facts", "Ranking", "exactly", "why_first"]

Facts = tuple[float, ...]
"""The numbers that an item's score is made of."""

AHEAD = 256
"""The horizon is one part in so many away: far enough to be reached seldom, near enough for tight ceilings."""
SLACK = 16
"""Out-of-date entries that a heap may hold beside as many as there are others."""


def why_first(best: Sequence[NodeId], terms: Callable[[NodeId], Mapping[str, float]], among: int) -> Reason:
    """Why the first of some nodes, best first, was taken: its terms beside those of the second, where there is one."""
    rival = best[1] if len(best) > 1 else None
    return Reason(best[0], terms(best[0]), among, rival, None if rival is None else terms(rival))


def exactly(facts: Facts, now: int) -> float:
    """The score of items whose only fact is their score."""
    del now
    return facts[0]


class Ranking:
    """Items by score. Items of the same facts have the same score; the smaller item comes first among equals.

    `score(facts, now)` may depend on a count `now` that all items share. It must not fall when `now` grows, but it may
    fall between two calls otherwise. Its value at the *horizon*, a little beyond `now`, is then a ceiling: an item
    whose ceiling is below the scores that were found already need not be looked at, and what is found is exact.
    """

    def __init__(self, score: Callable[[Facts, int], float], now: int = 0) -> None:
        self._score = score
        self._horizon = now
        self._facts: dict[int, Facts] = {}
        self._alike: dict[Facts, list[int]] = {}
        self._heap: list[tuple[float, Facts]] = []

    def __len__(self) -> int:
        return len(self._facts)

    def put(self, item: int, facts: Facts | None) -> None:
        """Rank an item by these facts from now on; None: it is out."""
        old = self._facts.pop(item, None)
        if old is not None:
            alike = self._alike[old]
            del alike[bisect_left(alike, item)]
            if not alike:
                del self._alike[old]
        if facts is not None:
            self._facts[item] = facts
            if facts not in self._alike:
                self._alike[facts] = []
                heappush(self._heap, (-self._score(facts, self._horizon), facts))
            insort(self._alike[facts], item)

    def best(self, now: int = 0) -> list[tuple[float, int]]:
        """The two best, each with its score; fewer when there are fewer."""
        if now > self._horizon or len(self._heap) > 2 * len(self._alike) + SLACK:
            self._look_ahead(now + now // AHEAD)
        found: list[tuple[float, int]] = []
        looked_at: dict[Facts, float] = {}
        while self._heap and (len(found) < 2 or self._heap[0][0] <= found[1][0]):
            negative, facts = heappop(self._heap)
            if facts in self._alike and facts not in looked_at:
                looked_at[facts] = negative
                score = self._score(facts, now)
                found = sorted([*found, *((-score, item) for item in self._alike[facts][:2])])[:2]
        for facts, negative in looked_at.items():
            heappush(self._heap, (negative, facts))
        return [(-negative, item) for negative, item in found]

    def _look_ahead(self, horizon: int) -> None:
        self._horizon = horizon
        self._heap = [(-self._score(facts, horizon), facts) for facts in self._alike]
        heapify(self._heap)
