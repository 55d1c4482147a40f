"""Foresight: what a model expects of a change before its tests are run."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.exhibit import unmeasured_messages
from agent.evaluate.value.weighing import hear
from agent.models import Model
from agent.models.conversing import RETRIES, Abstained, Unreadable, last_object

__all__ = ["Foresight"]

log = logging.getLogger(__name__)

FULL = 100
"""The best score."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """One request per state, before it is measured. The answer is the state's prior, which `search.prior_visits` fades
    into what is measured: the value model of I-MCTS (arXiv 2502.14693), whose scores are from 0 to 100."""

    model: Model

    def expected(self, case: EvaluationInput) -> float | None:
        """In [0, 1]: the worth that the model expects of a state; None: it has no opinion. The report of the case is
        that of the state's parent.

        Raises:
            agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
        """
        try:
            return hear(case, self.model, partial(unmeasured_messages, case), _read_score, RETRIES)
        except Abstained as why:
            log.warning("nothing is expected of a state: %s", why)
            return None


def _read_score(text: str) -> float:
    score = last_object(text, "score")["score"]
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= FULL:
        raise Unreadable(f"`score` is {str(score)[:40]!r}: give a number from 0 to {FULL}")
    return score / FULL
