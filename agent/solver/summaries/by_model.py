"""A model's summary of a rollout, held against what was recorded.

Law: what can be known from the journal is taken from the journal. The model adds words, and where its facts are wrong
the summary says so.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial

from agent.errors import PolicyError
from agent.evaluate.value.judge import require_mends
from agent.models import Ask, Model
from agent.models.conversing import Abstained, inquire
from agent.run.rollouts import Rollout, Summary
from agent.run.run import Run
from agent.solver.summaries.contradictions import Witness, contradictions
from agent.solver.summaries.journal import in_words
from agent.solver.summaries.record import Record, record
from agent.solver.summaries.told import Told, question, read_told
from agent.task import Task
from sandboxes import Provider

__all__ = ["ModelSummariser"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelSummariser:
    """One question a rollout. Thread-safe."""

    model: Model
    max_mends: int = 2
    """Unreadable answers in a row that are put up with; after one more the summary without a model stands."""

    def __post_init__(self) -> None:
        require_mends(self.max_mends)

    def summarise(self, task: Task, run: Run, provider: Provider | None, rollout: Rollout, ask: Ask) -> Summary:
        """The summary of a rollout; that without a model where no account of the model's can be read, or it has no
        room for the question.

        Raises:
            agent.budget.BudgetSpent, agent.errors.Stopped: a limit was reached, or the run cancelled; a later session
                can ask.
            agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
            sandboxes.SandboxError: as `agent.solver.summaries.summarise`.
        """
        found = record(run, provider, rollout)
        journal = in_words(found)
        patch = run.journal.get_blob(journal.patch_blob) if journal.patch_blob else b""
        asked = partial(question, task, found.path, found.best, patch)
        try:
            told = inquire(ask, self.model, asked, read_told, self.max_mends)
        except (Abstained, PolicyError) as why:
            log.warning("the summary of node %d is without a model's words: %s", rollout.leaf, why)
            return journal
        return combined(told, journal, found, self.model.name)


def combined(told: Told, journal: Summary, found: Record, author: str) -> Summary:
    """The journal's facts and the model's words. Its progress stands only where none of its facts is wrong."""
    wrong = contradictions(told, journal, found)
    witness = Witness(found)
    return replace(
        journal,
        author=author,
        hypothesis=told.hypothesis or journal.hypothesis,
        files_read=_joined(journal.files_read, tuple(path for path in told.files_read if witness.knows(path))),
        progress=journal.progress if wrong or not told.progress else told.progress,
        failure_modes=_joined(journal.failure_modes, told.failure_modes),
        risks=_joined(journal.risks, told.risks),
        insights=_joined(journal.insights, told.insights),
        contradictions=wrong,
    )


def _joined(recorded: tuple[str, ...], told: tuple[str, ...]) -> tuple[str, ...]:
    """What was recorded first, and each once."""
    return tuple(dict.fromkeys((*recorded, *told)))
