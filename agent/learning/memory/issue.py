"""Which issue a memory comes from, and whether that is the one at hand.

Law: no issue is ever shown a memory of itself, under whatever name, so that a benchmark's numbers stay what they are.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from agent.learning.memory.words import pairs
from agent.measure.ids import holds
from agent.task import Task
from agent.untrusted import issue_text

__all__ = ["Issue"]

STATEMENT_CHARS = 20_000
SHARED = 0.6
"""Two statements are one from this share of all their pairs of words on."""
HELD = 0.8
"""A statement is part of another from this share of its own pairs on."""
LEAST_PAIRS = 8
"""Of a statement that has fewer, nothing is said by its being part of another."""


@dataclass(frozen=True, slots=True)
class Issue:
    """What tells an issue from others."""

    task_id: str
    statement: str
    """As its page shows it, cut to `STATEMENT_CHARS` characters."""
    repo: str = ""
    """As a benchmark calls it; empty where nobody says."""
    base: str = ""
    """The commit; empty where it is not known."""
    goals: tuple[str, ...] = ()
    """The failing tests that were named, or files, classes or functions that hold them."""

    @classmethod
    def of(cls, task: Task) -> Issue:
        """The issue of a task."""
        repo = task.tags.get("repo", "")
        return cls(task.id, issue_text(task.statement)[:STATEMENT_CHARS], repo, task.base, task.goal_tests)

    @property
    def digest(self) -> str:
        """Of the statement, however its lines are broken."""
        return hashlib.sha256(" ".join(self.statement.split()).casefold().encode("utf-8", "replace")).hexdigest()

    def same(self, other: Issue) -> bool:
        """Whether both are one issue: they have one id, one statement or nearly so, or one commit of one repository.

        Where no benchmark names the repository, one commit is one issue only with a goal test in common, be it named
        itself or by what holds it: people do meet two faults in one commit.
        """
        if self.task_id == other.task_id or (self.statement and self.digest == other.digest):
            return True
        if self.base and self.base == other.base:
            named = bool(self.repo) and self.repo == other.repo
            if named or any(holds(a, b) or holds(b, a) for a in self.goals for b in other.goals):
                return True
        return _nearly(self.statement, other.statement)


def _nearly(one: str, other: str) -> bool:
    first, second = sorted((pairs(one), pairs(other)), key=len)
    shared = len(first & second)
    if not shared:
        return False
    return shared >= SHARED * len(first | second) or (len(first) >= LEAST_PAIRS and shared >= HELD * len(first))
