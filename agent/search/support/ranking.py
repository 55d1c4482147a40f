"""The best of many items without scoring all of them: a lazy-deletion heap of upper bounds."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from agent.run.tree.choice import Reason
from agent.run.tree.node import NodeId

Facts = tuple[float, ...]
"""The numbers from which an item's score is computed."""

AHEAD = 256
"""The horizon is `now + now // AHEAD`: far enough to be reached seldom, near enough for tight upper bounds."""
SLACK = 16
"""The heap is rebuilt when it has this many entries more than twice the current ones."""


def why_first(best: Sequence[NodeId], terms: Callable[[NodeId], Mapping[str, float]], among: int) -> Reason:
    """Why the first of these nodes, sorted best first, was selected: its terms and those of the second, if any."""
    rival = best[1] if len(best) > 1 else None
    return Reason(best[0], terms(best[0]), among, rival, None if rival is None else terms(rival))


def exactly(facts: Facts, now: int) -> float:
    """The score function of items whose only fact is their score."""
    del now
    return facts[0]


class Ranking:
    """Items ranked by score. Items with equal facts form a class and have the same score; among equals the smaller item
    comes first.

    `score(facts, now)` may depend on a count `now` that all items share, such as the visit count of their parent. It
    must not fall when `now` grows, but may fall between two calls for other reasons. So the score at the *horizon*, a
    little beyond `now`, stays an upper bound. `best` pops the classes with the highest bounds, computes their exact
    scores, and stops at a bound below the second best score: the result is exact. An entry whose class has no items
    left is deleted lazily, when it is popped.

    Example: UCT scores `value + 0.1 * sqrt(ln now / visits)` in a heap built at `now` = 1024, for which the horizon is
    1024 + 1024 // 256 = 1028. The classes (value, visits) are A = (0.5, 400), B = (0.4, 40) and C = (0.3, 400), with
    the upper bounds 0.513, 0.442 and 0.313. `best` pops A and B, computes their scores, and stops, since C's bound is
    below B's score. C is not scored; A and B are pushed back. The heap is rebuilt when `now` passes 1028.
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
        """Rank an item by these facts from now on; None removes it."""
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
        """The two best items with their scores, or fewer."""
        if now > self._horizon or len(self._heap) > 2 * len(self._alike) + SLACK:
            self._rebuild(now + now // AHEAD)
        best: list[tuple[float, int]] = []
        popped: dict[Facts, float] = {}
        while self._heap and (len(best) < 2 or self._heap[0][0] <= best[1][0]):
            negative_bound, facts = heappop(self._heap)
            if facts in self._alike and facts not in popped:
                popped[facts] = negative_bound
                score = self._score(facts, now)
                best = sorted([*best, *((-score, item) for item in self._alike[facts][:2])])[:2]
        for facts, negative_bound in popped.items():
            heappush(self._heap, (negative_bound, facts))
        return [(-negative, item) for negative, item in best]

    def _rebuild(self, horizon: int) -> None:
        self._horizon = horizon
        self._heap = [(-self._score(facts, horizon), facts) for facts in self._alike]
        heapify(self._heap)
