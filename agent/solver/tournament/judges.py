"""Judges: models that pick the best of a group, directly or after a debate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from agent.errors import ConfigError, PolicyError
from agent.evaluate.value.exhibit import speech
from agent.models import Ask, Model, directly
from agent.models.answers import Abstained, ask_within_context, words
from agent.prompts import render
from agent.run.ballots import Ballot, Judge
from agent.run.cross_tests import UNTESTED, Matrix
from agent.run.rollouts import Candidate
from agent.settings import TournamentSettings
from agent.solver.tournament.exhibit import group_messages, letters, read_ballot, read_criteria
from agent.task import Task

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A judge that asks its model one question per vote; with `debate`, after a speech for each candidate.

    SWE-Search picks the final answer by a debate of several agents (arXiv 2410.20285). One advocate per candidate is
    our own choice: it makes the speeches differ at any temperature. A vote after a debate takes one more question for
    each candidate, so that the budget allows fewer votes.

    With `criteria`, the model derives criteria from the differences of the candidates and judges by each of them. The
    overall winner is computed here, from the sums of their weights, as in the Open Rubric System.
    """

    model: Model
    ask: Ask = directly
    debate: bool = False
    criteria: bool = False

    @property
    def name(self) -> str:
        """The name of the model, with a mark if it debates or judges by criteria."""
        how = " (debate)" if self.debate else " (criteria)" if self.criteria else ""
        return self.model.name + how

    def requests(self, size: int) -> int:
        """Return 1; with `debate`, one more for each candidate."""
        return 1 + size * self.debate

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix = UNTESTED) -> Ballot:
        """As `agent.run.ballots.Judge.vote`. Abstains if an answer cannot be read or a question is too long for the
        model."""
        names, messages = letters(group), partial(group_messages, task, group, matrix)

        def ask(question: str, read: Callable[[str], _T]) -> _T:
            return ask_within_context(self.ask, self.model, partial(messages, question), read, seed=vote)

        try:
            if self.criteria:
                return ask(render("tournament_criteria", letters=names), partial(read_criteria, group))
            speeches = [_speech(ask, letter) for letter in names] if self.debate else []
            question = render("tournament_question", letters=names, speeches=speeches)
            return ask(question, partial(read_ballot, group))
        except (Abstained, PolicyError) as why:
            return Ballot(tuple(candidate.node for candidate in group), None, str(why))


def _speech(ask: Callable[[str, Callable[[str], str]], str], letter: str) -> str:
    return speech(letter, ask(render("tournament_speech", letter=letter, speeches=()), words))


JUDGES: dict[str, Callable[[Model, Ask], Judge]] = {
    "criteria": partial(ModelJudge, criteria=True),
    "debate": partial(ModelJudge, debate=True),
    "vote": ModelJudge,
}
"""Judges by their names in the setting `tournament.judge`."""


def judge_of(
    settings: TournamentSettings, proposing: str | None, models: Callable[[str], Model]
) -> Callable[[Ask], Judge] | None:
    """Return a function that makes the judge that the settings name, given a way to ask its model; None: there are no
    votes. `proposing` is the model among the policies, if there is one.

    Raises:
        ConfigError: a debate or criteria need a model, but there is none.
    """
    name = settings.model or proposing
    if name is None and settings.judge in ("criteria", "debate"):
        raise ConfigError(
            f"tournament.judge={settings.judge} needs a model, and no policy is one: set one with "
            "-c tournament.model=PROVIDER/NAME, or use tournament.judge=none"
        )
    return None if name is None or settings.judge == "none" else partial(JUDGES[settings.judge], models(name))
