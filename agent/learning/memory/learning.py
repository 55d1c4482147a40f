"""What runs taught, in sentences: the lessons of one run, and those of several run directories."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from agent.learning.memory.admission import Unverified, now, source_of
from agent.learning.memory.distilling import Distiller
from agent.learning.memory.insights import Add
from agent.learning.memory.items import Experience, Source
from agent.learning.memory.remembering import contrasts, episode, experiences
from agent.learning.memory.skills import Lessons
from agent.models.answers import Abstained, line
from agent.run.paths import journal_of
from agent.run.run import Run
from agent.solver.summaries import JOURNAL

log = logging.getLogger(__name__)

LESSONS = 8
"""The maximum number of lessons per run, so that no run crowds out the others."""


def lessons(run: Run, experiences: list[Experience]) -> tuple[str, ...]:
    """The insights in models' summaries of the rollouts, in the order of recording. Without any, the steps that made
    failing tests pass; without those, the insights in the journal's own summaries."""
    helped = [f'Where a test fails with "{step.error}", this helped: {step.done}' for step in experiences]
    by_models, by_journal = list[str](), list[str]()
    for (_, author), summary in run.summaries.items():
        (by_journal if author == JOURNAL else by_models).extend(summary.insights)
    return tuple(dict.fromkeys(map(line, by_models or helped or by_journal)))[:LESSONS]


def lessons_of(
    directories: Sequence[Path], distiller: Distiller | None = None
) -> tuple[list[Lessons], list[tuple[Path, str]]]:
    """The lessons of each verified run, and each other run with the reason why it is refused. `distiller` asks a model
    for the lessons, one question per run; without it, or if the answer cannot be read, `lessons` gives them.

    Raises:
        agent.errors.UsageError: a directory holds no run.
        agent.errors.RamifyError: as `distiller`.
    """
    accepted, refused = list[Lessons](), list[tuple[Path, str]]()
    for directory in directories:
        with Run.read(journal_of(directory).parent) as run:
            try:
                source = source_of(run, now())
            except Unverified as why:
                refused.append((directory, str(why)))
            else:
                accepted.append(Lessons(source, _taught(run, source, distiller)))
    return accepted, refused


def _taught(run: Run, source: Source, distiller: Distiller | None) -> tuple[str, ...]:
    own = lessons(run, experiences(run, source))
    if distiller is None:
        return own
    try:
        operations = distiller(episode(run, source), own, (), contrasts(run))
    except Abstained as why:
        log.warning("%s: the model's answer cannot be used; taking the run's own lessons: %s", source.id, why)
        return own
    return tuple(operation.text for operation in operations if isinstance(operation, Add))
