"""Learning from runs on disk: what each taught, or why it may not be learned from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent.learning.memory.admission import Unverified, now, source_of
from agent.learning.memory.lessons import lessons
from agent.learning.memory.remembering import experiences
from agent.learning.memory.skills import Lessons
from agent.run.paths import journal_of
from agent.run.run import Run

__all__ = ["lessons_of"]


def lessons_of(directories: Sequence[Path]) -> tuple[list[Lessons], list[tuple[Path, str]]]:
    """What each of the runs taught, and of those that were refused, why.

    Raises:
        agent.errors.UsageError: a directory holds no run.
    """
    taught, refused = list[Lessons](), list[tuple[Path, str]]()
    for directory in directories:
        with Run.read(journal_of(directory).parent) as run:
            try:
                source = source_of(run, now())
            except Unverified as why:
                refused.append((directory, str(why)))
            else:
                taught.append(Lessons(source, lessons(run, experiences(run, source))))
    return taught, refused
