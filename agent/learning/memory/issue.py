"""Which issue a memory comes from, and whether two issues are the same.

Invariant: no issue is ever shown a memory of itself, under any name, so that benchmark results stay honest.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from agent.learning.memory.words import pairs
from agent.measure.ids import holds
from agent.task import Task
from agent.untrusted import issue_text

STATEMENT_CHARS = 20_000
SHARED = 0.6
"""Two statements are the same if they share at least this part of all their word pairs."""
HELD = 0.8
"""A statement is contained in another that has at least this part of its word pairs."""
LEAST_PAIRS = 8
"""A statement with fewer word pairs may be contained in another by chance."""


@dataclass(frozen=True, slots=True)
class Issue:
    """The facts that identify an issue."""

    task_id: str
    statement: str
    """As the issue's page shows it, cut to `STATEMENT_CHARS` characters."""
    repo: str = ""
    """The repository's name in a benchmark; empty if unknown."""
    base: str = ""
    """The base commit; empty if unknown."""
    goals: tuple[str, ...] = ()
    """The named failing tests, or files, classes or functions that hold them."""

    @classmethod
    def of(cls, task: Task) -> Issue:
        """The issue of a task."""
        repo = task.tags.get("repo", "")
        return cls(task.id, issue_text(task.statement)[:STATEMENT_CHARS], repo, task.base, task.goal_tests)

    @property
    def digest(self) -> str:
        """A hash of the statement that ignores line breaks and case."""
        return hashlib.sha256(" ".join(self.statement.split()).casefold().encode("utf-8", "replace")).hexdigest()

    def same(self, other: Issue) -> bool:
        """Whether both are the same issue: same id, same or nearly the same statement, or same commit of a repository.

        When no benchmark names the repository, the same commit is the same issue only with a goal test in common,
        named itself or by what holds it: two different bugs can be found in one commit.
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
