"""Finds duplicate rows: exact copies, and near copies from other tasks.

Rows of one task are naturally alike (siblings differ in a few characters), so only exact copies are dropped there.
Between tasks a near copy comes from a fork or a vendored file, and would leak from one split to another. Likeness is
the share of common word triples (Jaccard), estimated from the smallest of their hashes (bottom-k MinHash).
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

SKETCH = 128
"""The number of hashes kept for a text; the estimate is off by about 0.04."""
WORDS = 3
LEAST_WORDS = 20
"""Shorter texts are not compared."""
_ASIDE = ("provenance", "trajectory_id", "round", "steps", "margin", "scores", "visits")
"""Columns with the origin of a row; rows that differ only in these are copies."""
_WORD = re.compile(r"\w+|[^\w\s]")


class Duplicates:
    """Remembers rows to recognize copies of them."""

    def __init__(self, near: float | None = 0.9) -> None:
        """`near`, in (0, 1]: from this likeness on, rows of different tasks are copies; None: never."""
        self.near = near
        self._seen: set[str] = set()
        self._task = ""
        self._own: set[frozenset[int]] = set()
        self._sketches: list[tuple[str, frozenset[int]]] = []
        self._with: defaultdict[int, list[int]] = defaultdict(list)

    def reason(self, row: Row, work: str, task: str) -> str:
        """Why the row is a copy of an earlier one; empty if it is not, and then it is remembered. `work` is the text in
        which near copies are alike whatever their format: the issue and what was written. `task` is the key of its task
        (`agent.learning.export.provenance.task_key`)."""
        digest = digest_of({key: _without_ids(value) for key, value in row.items() if key not in _ASIDE})
        if digest in self._seen:
            return "an exact copy of another row"
        self._seen.add(digest)
        work_words = words(work)
        if self.near is None or len(work_words) < LEAST_WORDS:
            return ""
        mine = sketch(work_words)
        self._enter(task)
        if self._copied(task, mine):
            return "nearly a copy of another task's row"
        self._own.add(mine)
        return ""

    def _enter(self, task: str) -> None:
        """Begin the rows of this task. From now on, rows are also compared with those of the task before."""
        if task != self._task:
            for mine in sorted(self._own, key=sorted):
                for value in mine:
                    self._with[value].append(len(self._sketches))
                self._sketches.append((self._task, mine))
            self._task, self._own = task, set()

    def _copied(self, task: str, mine: frozenset[int]) -> bool:
        assert self.near is not None
        common = Counter(row for value in sorted(mine) for row in self._with.get(value, ()))
        for row, shared in common.items():
            other, theirs = self._sketches[row]
            enough = shared >= self.near * min(len(mine), len(theirs)) / 2
            if enough and other != task and likeness(mine, theirs) >= self.near:
                return True
        return False


def _without_ids(value: Any) -> Any:
    """A value of a row, its messages without call ids."""
    match value:
        case {"role": str()}:
            return bare(value)
        case Mapping():
            return {key: _without_ids(field) for key, field in value.items()}
        case list():
            return [_without_ids(item) for item in value]
        case _:
            return value


def words(text: str) -> list[str]:
    """The words and signs of a text, in lower case."""
    return _WORD.findall(text.lower())


def sketch(text: list[str]) -> frozenset[int]:
    """The smallest hashes of the word triples of a text; a text of fewer words is hashed whole."""
    triples = {" ".join(text[start : start + WORDS]) for start in range(max(1, len(text) - WORDS + 1))}
    hashes = (int.from_bytes(blake2b(triple.encode("utf-8", "replace"), digest_size=8).digest()) for triple in triples)
    return frozenset(heapq.nsmallest(SKETCH, hashes))


def likeness(one: frozenset[int], other: frozenset[int]) -> float:
    """The estimated share of common word triples of two sketches, in [0, 1]."""
    both = heapq.nsmallest(SKETCH, one | other)
    return sum(value in one and value in other for value in both) / len(both) if both else 1.0
