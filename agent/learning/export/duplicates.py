"""Duplicates: rows that say the same as one before, and rows of other tasks that say nearly the same.

Rows of one task are alike by nature (siblings differ in a few characters), so that only exact copies are dropped there.
Between tasks a near copy is a fork or a vendored file: in two splits it would be a leak. Likeness is the share of
common word triples (Jaccard), estimated from the smallest of their hashes (bottom-k MinHash).
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from agent.learning.export import Row
from agent.learning.export.turns import bare
from agent.run.message_store import digest_of

__all__ = ["Duplicates", "likeness", "sketch", "words"]

SKETCH = 128
"""Hashes kept of a text: the estimate is off by about 0.04."""
WORDS = 3
LEAST_WORDS = 20
"""Shorter work is no sign of anything."""
_ASIDE = ("provenance", "trajectory_id", "round", "steps", "margin", "scores", "visits")
"""Columns that tell where a row comes from and how it was found: the same is said with others."""
_WORD = re.compile(r"\w+|[^\w\s]")


class Duplicates:
    """Remembers rows."""

    def __init__(self, near: float | None = 0.9) -> None:
        """`near`, in (0, 1]: rows of different tasks that are as much alike are copies; None: none is."""
        self.near = near
        self._seen: set[str] = set()
        self._task = ""
        self._own: set[frozenset[int]] = set()
        self._sketches: list[tuple[str, frozenset[int]]] = []
        self._with: defaultdict[int, list[int]] = defaultdict(list)

    def reason(self, row: Row, work: str, task: str) -> str:
        """Why the row is a copy of one before; empty where it is none, and then it is remembered. `work` is what near
        copies have in common, whatever their format: the issue, and what was written. `task` is what tells its task
        from others (`agent.learning.export.provenance.task_key`)."""
        digest = digest_of({key: _without_ids(value) for key, value in row.items() if key not in _ASIDE})
        if digest in self._seen:
            return "an exact copy of another row"
        self._seen.add(digest)
        said = words(work)
        if self.near is None or len(said) < LEAST_WORDS:
            return ""
        mine = sketch(said)
        self._look_at(task)
        if self._copied(task, mine):
            return "nearly a copy of another task's row"
        self._own.add(mine)
        return ""

    def _look_at(self, task: str) -> None:
        """Rows of this task come now: those of the one before it can be compared with from here on."""
        if task != self._task:
            for mine in sorted(self._own, key=sorted):
                for each in mine:
                    self._with[each].append(len(self._sketches))
                self._sketches.append((self._task, mine))
            self._task, self._own = task, set()

    def _copied(self, task: str, mine: frozenset[int]) -> bool:
        assert self.near is not None
        common = Counter(row for each in sorted(mine) for row in self._with.get(each, ()))
        for row, shared in common.items():
            other, theirs = self._sketches[row]
            enough = shared >= self.near * min(len(mine), len(theirs)) / 2
            if enough and other != task and likeness(mine, theirs) >= self.near:
                return True
        return False


def _without_ids(value: Any) -> Any:
    """A value of a row with its messages bare."""
    match value:
        case {"role": str()}:
            return bare(value)
        case Mapping():
            return {key: _without_ids(each) for key, each in value.items()}
        case list():
            return [_without_ids(each) for each in value]
        case _:
            return value


def words(text: str) -> list[str]:
    """The words and signs of a text, in lower case."""
    return _WORD.findall(text.lower())


def sketch(text: list[str]) -> frozenset[int]:
    """The smallest hashes of the word triples of a text; of a shorter one, of itself."""
    triples = {" ".join(text[start : start + WORDS]) for start in range(max(1, len(text) - WORDS + 1))}
    hashes = (int.from_bytes(blake2b(each.encode("utf-8", "replace"), digest_size=8).digest()) for each in triples)
    return frozenset(heapq.nsmallest(SKETCH, hashes))


def likeness(one: frozenset[int], other: frozenset[int]) -> float:
    """The estimated share of common word triples of two sketches, in [0, 1]."""
    both = heapq.nsmallest(SKETCH, one | other)
    return sum(each in one and each in other for each in both) / len(both) if both else 1.0
