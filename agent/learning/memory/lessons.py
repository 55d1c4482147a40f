"""Lessons: what one run taught, in sentences, before anybody has compared it with another."""

from __future__ import annotations

from agent.learning.memory.items import Experience
from agent.models.conversing import line
from agent.run.run import Run
from agent.solver.summaries import JOURNAL

__all__ = ["lessons"]

LESSONS = 8
"""Of one run, so that none crowds out the others."""


def lessons(run: Run, experiences: list[Experience]) -> tuple[str, ...]:
    """What models say in the summaries of its rollouts, in the order of recording; else what made failing tests pass;
    else what the journal's own summaries have."""
    helped = [f'Where a test fails with "{each.error}", this helped: {each.done}' for each in experiences]
    written = [each for (_, author), summary in run.summaries.items() if author != JOURNAL for each in summary.insights]
    read_off = [
        each for (_, author), summary in run.summaries.items() if author == JOURNAL for each in summary.insights
    ]
    return tuple(dict.fromkeys(map(line, written or helped or read_off)))[:LESSONS]
