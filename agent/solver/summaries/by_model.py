"""A model's summary of a rollout, checked against the journal.

Invariant: facts come from the journal. The model adds words, and the summary says where the model's facts are wrong.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from agent.errors import PolicyError
from agent.models import Ask, Model
from agent.models.answers import Abstained, ask_within_context
from agent.run.rollouts import Rollout, Summary
from agent.run.run import Run
from agent.solver.summaries.account import Account, question, read_account
from agent.solver.summaries.contradictions import RecordedNames, contradictions
from agent.solver.summaries.journal import summary_of
from agent.solver.summaries.record import Record, record
from agent.solver.summaries.wording import distinct
from agent.task import Task
from sandboxes import Provider

log = logging.getLogger(__name__)


def summarise_by_model(
    model: Model, task: Task, run: Run, provider: Provider | None, rollout: Rollout, ask: Ask
) -> Summary:
    """Summarise a rollout with one question to the model. If no account can be read from the answer, or the question is
    too long for the model, the summary is made without the model.

    Raises:
        agent.budget.BudgetSpent, agent.errors.Stopped: a limit was reached or the run was cancelled; a later session
            can ask.
        agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
        sandboxes.SandboxError: as `agent.solver.summaries.summarise`.
    """
    facts = record(run, provider, rollout)
    journal = summary_of(facts)
    patch = run.journal.get_blob(journal.patch_blob) if journal.patch_blob else b""
    messages = partial(question, task, facts.path, facts.best, patch)
    try:
        account = ask_within_context(ask, model, messages, read_account)
    except (Abstained, PolicyError) as why:
        log.warning("the summary of node %d is made without a model: %s", rollout.leaf, why)
        return journal
    return _combined(account, journal, facts, model.name)


def _combined(account: Account, journal: Summary, facts: Record, author: str) -> Summary:
    """Combine the facts of the journal with the words of the model. The model's description of the progress is used
    only if nothing contradicts the account."""
    names = RecordedNames(facts)
    wrong = contradictions(account, journal, names)
    return replace(
        journal,
        author=author,
        hypothesis=account.hypothesis or journal.hypothesis,
        files_read=distinct((*journal.files_read, *filter(names.knows, account.files_read))),
        progress=journal.progress if wrong or not account.progress else account.progress,
        failure_modes=distinct((*journal.failure_modes, *account.failure_modes)),
        risks=distinct((*journal.risks, *account.risks)),
        insights=distinct((*journal.insights, *account.insights)),
        contradictions=wrong,
    )
