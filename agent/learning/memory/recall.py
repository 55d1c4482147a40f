"""Recall: what a policy is told of memory, at the base state and where a new error turns up.

Laws: what was recalled is a note of the run's, so that a memory that changes meanwhile changes no run: a resumed run is
told what it was told, and a replay what the replayed run was. An issue is told nothing of itself
(`agent.learning.memory.issue`).
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
from agent.run.tree.tree import Node
from agent.task import Task

__all__ = ["OPENING", "Lookup", "Replayed"]

log = logging.getLogger(__name__)

OPENING = "recalled"
"""Of the note on the root that holds what was recalled at the base state; of what was recalled of errors, the key goes
on with their digest."""
REFLECTIONS = 2
EXPERIENCES = 2
STEP_SHARE = 0.5
"""Of the tokens at the base state, the most where an error turns up later."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Looks things up for one run, each once. Thread-safe."""

    memory: Memory
    demos: int
    """Past repairs that are shown."""
    insights: int
    tokens: int
    """At the base state; see `agent.settings.MemorySettings`."""

    def __call__(self, task: Task, path: tuple[Node, ...], once: Memo) -> str:
        """What is remembered for the state that the path ends at; empty when nothing fits. Below the base state only
        errors that none of the states above had are looked up."""
        if len(path) == 1:
            return _noted(once, OPENING, partial(self._opening, task, path[0].report))
        errors = _new_errors(path)
        return _noted(once, _key(errors), partial(self._met, task, errors)) if errors else ""

    def _opening(self, task: Task, report: SuiteReport) -> Remembered:
        """Demonstrations first, then in turns what else fits, so that every kind has its say in a small limit. Of a
        long query only the beginning counts, so the errors come before the issue."""
        issue, errors = Issue.of(task), errors_of(report)
        text = "\n".join((*errors.values(), issue.statement))

        def found(kind: Kind, count: int) -> list[Item]:
            return [each.item for each in self.memory.search(text, kind, count, issue)]

        kinds = (
            found("episode", self.demos),
            self._experiences(errors.values(), issue),
            found("insight", self.insights),
            found("reflection", REFLECTIONS),
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
    """Recalls what a run was told, and nothing else."""

    run: Run

    def __call__(self, task: Task, path: tuple[Node, ...], once: Memo) -> str:
        """As `Lookup`."""
        key = OPENING if len(path) == 1 else _key(_new_errors(path))
        known = self.run.note(self.run.tree.root.id, key)
        return "" if known is None else str(once(key, lambda: known)["text"])


def _noted(once: Memo, key: str, look: Callable[[], Remembered]) -> str:
    return str(once(key, lambda: asdict(_found(look)))["text"])


def _found(look: Callable[[], Remembered]) -> Remembered:
    """What there is; nothing, where the memory has become unusable: no search ends for want of it."""
    try:
        return look()
    except MemoryUnusable as error:
        log.warning("nothing is recalled: %s", error)
        return Remembered()


def _new_errors(path: tuple[Node, ...]) -> tuple[str, ...]:
    """How the tests of the last state fail, and of none above it, as errors that are alike read."""
    *above, last = (dict.fromkeys(map(shape_of, errors_of(node.report).values())) for node in path)
    return tuple(sorted(error for error in last if not any(error in each for each in above)))


def _key(errors: tuple[str, ...]) -> str:
    return f"{OPENING}: {hashlib.sha256(repr(errors).encode('utf-8', 'replace')).hexdigest()[:16]}"
