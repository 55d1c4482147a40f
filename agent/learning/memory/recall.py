"""Recall: the memories that a policy is shown, at the base state and when a new error appears.

Invariants: recalled text is recorded as a note of the run, so that later changes of the memory do not change a resumed
run or a replay. An issue is never shown a memory of itself (`agent.learning.memory.issue`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, zip_longest

from agent.errors import MemoryUnusable
from agent.learning.memory import Memory
from agent.learning.memory.clusters import cluster_of, errors_of, shape_of
from agent.learning.memory.composing import Remembered, compose
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import Item, Kind
from agent.measure import SuiteReport
from agent.run.memo import Memo
from agent.run.run import Run
from agent.run.tree.node import Node
from agent.task import Task

log = logging.getLogger(__name__)

OPENING = "recalled"
"""The key of the root's note with what was recalled at the base state. For errors, their digest is appended."""
REFLECTIONS = 2
EXPERIENCES = 2
STEP_SHARE = 0.5
"""The token limit for a later error, as a share of that at the base state."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Looks up memories for one run, each query once. Thread-safe."""

    memory: Memory
    demos: int
    """How many past repairs are shown."""
    insights: int
    tokens: int
    """The limit at the base state; see `agent.settings.MemorySettings`."""

    def __call__(self, task: Task, path: tuple[Node, ...], memo: Memo) -> str:
        """The memories for the last state of the path; empty when nothing fits. Below the base state, only errors that
        no state above had are looked up."""
        if len(path) == 1:
            return _noted(memo, OPENING, partial(self._opening, task, path[0].report))
        errors = _new_errors(path)
        return _noted(memo, _key(errors), partial(self._met, task, errors)) if errors else ""

    def _opening(self, task: Task, report: SuiteReport) -> Remembered:
        """One item of each kind in turn, demonstrations first, so that a small limit still holds every kind. Only the
        beginning of a long query counts, so the errors come before the issue."""
        issue, errors = Issue.of(task), errors_of(report)
        text = "\n".join((*errors.values(), issue.statement))

        def search(kind: Kind, count: int) -> list[Item]:
            return [match.item for match in self.memory.search(text, kind, count, issue)]

        kinds = (
            search("episode", self.demos),
            self._experiences(errors.values(), issue),
            search("insight", self.insights),
            search("reflection", REFLECTIONS),
        )
        in_turns = chain.from_iterable(zip_longest(*kinds))
        return compose([item for item in in_turns if item is not None], self.tokens)

    def _met(self, task: Task, errors: tuple[str, ...]) -> Remembered:
        return compose(self._experiences(errors, Issue.of(task)), int(self.tokens * STEP_SHARE))

    def _experiences(self, errors: Iterable[str], issue: Issue) -> list[Item]:
        clusters = dict.fromkeys(map(cluster_of, errors))
        return [*self.memory.met([*clusters], EXPERIENCES, issue)]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Repeats what was recalled in a recorded run, and nothing else."""

    run: Run

    def __call__(self, task: Task, path: tuple[Node, ...], memo: Memo) -> str:
        """As `Lookup`."""
        key = OPENING if len(path) == 1 else _key(_new_errors(path))
        note = self.run.note(self.run.tree.root.id, key)
        return "" if note is None else str(memo(key, lambda: note)["text"])


def _noted(memo: Memo, key: str, look_up: Callable[[], Remembered]) -> str:
    return str(memo(key, lambda: asdict(_or_nothing(look_up)))["text"])


def _or_nothing(look_up: Callable[[], Remembered]) -> Remembered:
    """The result; empty if the memory has become unusable: that must not end a search."""
    try:
        return look_up()
    except MemoryUnusable as error:
        log.warning("no memories are recalled: %s", error)
        return Remembered()


def _new_errors(path: tuple[Node, ...]) -> tuple[str, ...]:
    """The shapes of the errors that the last state has and no state above it."""
    *above, last = (dict.fromkeys(map(shape_of, errors_of(node.report).values())) for node in path)
    return tuple(sorted(error for error in last if not any(error in errors for errors in above)))


def _key(errors: tuple[str, ...]) -> str:
    return f"{OPENING}: {hashlib.sha256(repr(errors).encode('utf-8', 'replace')).hexdigest()[:16]}"
