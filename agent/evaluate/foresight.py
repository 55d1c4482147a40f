"""Foresight: a model estimates a change before its tests are run, by a score or by ranking it among its siblings."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from string import ascii_uppercase

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import ranking_messages, unmeasured_messages
from agent.evaluate.value.weighing import hear
from agent.models import Model
from agent.models.answers import RETRIES, Abstained, Unreadable, last_object, number_in

log = logging.getLogger(__name__)

FULL = 100
"""The best score."""
MOST = 7
"""How many siblings a state is ranked among: the newest ones."""
UNRANKED = 0.5
"""The expected worth of a state without siblings."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """Asks a model for a score once per state, before the state is measured. The score is the state's prior, which the
    setting `search.prior_visits` fades into the measured value, as in the value model of I-MCTS (arXiv 2502.14693),
    whose scores are from 0 to 100."""

    model: Model

    def expected(self, case: EvaluationInput) -> float | None:
        """Return the worth, in [0, 1], that the model expects a state to have; None if it has no opinion. The case
        holds the report of the state's parent.

        Raises:
            agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
        """
        try:
            return hear(case, self.model, partial(unmeasured_messages, case), _read_score, RETRIES)
        except Abstained as why:
            log.warning("a state gets no prior from the model: %s", why)
            return None


@dataclass(frozen=True, slots=True)
class SiblingRanking:
    """Asks a model to rank each state among its siblings, before the state is measured, as Agent Q's critic ranks the
    proposed actions (arXiv 2408.07199). The first state made from a parent is not ranked. A sibling keeps the place
    that it had among those before it."""

    model: Model

    def expected(self, case: EvaluationInput) -> float | None:
        """Return the state's place among its siblings: 1 for the best, 0 for the last, 0.5 if there are no others; None
        if the model has no opinion.

        Raises:
            agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
        """
        siblings = case.tree.children(case.path[-1].id) if case.tree is not None else []
        others = [sibling for sibling in siblings if sibling.state_hash != case.state][-MOST:]
        if not others:
            return UNRANKED
        names = ascii_uppercase[: len(others) + 1]
        try:
            question = partial(ranking_messages, case, others, names)
            ranking = hear(case, self.model, question, partial(_read_ranking, names), RETRIES)
        except Abstained as why:
            log.warning("a state is not ranked: %s", why)
            return None
        return 1.0 - ranking.index(names[-1]) / len(others)


def _read_ranking(names: str, text: str) -> list[str]:
    ranking = last_object(text, "ranking")["ranking"]
    if not isinstance(ranking, list) or sorted(map(str, ranking)) != sorted(names):
        raise Unreadable(f"`ranking` has to be a list with each of {', '.join(names)} once, the best first")
    return ranking


def _read_score(text: str) -> float:
    return number_in(last_object(text, "score"), "score", FULL) / FULL
