"""Judges: models that prefer one of a group, asked at once or after a debate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from agent.errors import ConfigError, PolicyError
from agent.evaluate.value.exhibit import fenced
from agent.models import Ask, Model, directly
from agent.models.conversing import Abstained, inquire, words
from agent.prompts import render
from agent.run.ballots import Ballot, Judge
from agent.run.rollouts import Candidate
from agent.settings import TournamentSettings
from agent.solver.tournament.exhibit import group_messages, letters, read_ballot
from agent.task import Task

__all__ = ["JUDGES", "Discriminator", "ModelJudge", "judge_of"]

SPEECH_BYTES = 8_000


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """One question a vote."""

    model: Model
    ask: Ask = directly
    max_mends: int = 2
    """Unreadable answers in a row that are put up with; after one more the judge abstains."""

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int) -> Ballot:
        """As `agent.run.ballots.Judge.vote`. It abstains where no answer can be read, or the model has no room."""
        try:
            return _decide(self.model, self.ask, self.max_mends, task, group, vote)
        except (Abstained, PolicyError) as why:
            return _abstention(group, why)


@dataclass(frozen=True, slots=True)
class Discriminator:
    """A debate a vote: each candidate has an advocate, who speaks `rounds` times and knows the speeches of the rounds
    before, and then somebody decides who knows them all.

    SWE-Search picks the final answer by a debate of several agents (arXiv 2410.20285). That each speaks for one
    candidate is our own: it makes the speeches differ whatever the temperature. A vote takes `rounds` questions for
    each candidate and one more, so that fewer votes can be afforded than with `ModelJudge`.
    """

    model: Model
    ask: Ask = directly
    rounds: int = 1
    max_mends: int = 2

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds={self.rounds}: each advocate speaks at least once")

    @property
    def name(self) -> str:
        """The model's, and that it has debated."""
        return f"{self.model.name} (debate)"

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int) -> Ballot:
        """As `agent.run.ballots.Judge.vote`. It abstains where somebody says nothing that can be read."""
        speeches: list[str] = []
        try:
            for _ in range(self.rounds):
                speeches += [self._speech(task, group, vote, letter, tuple(speeches)) for letter in letters(group)]
            return _decide(self.model, self.ask, self.max_mends, task, group, vote, speeches)
        except (Abstained, PolicyError) as why:
            return _abstention(group, why)

    def _speech(self, task: Task, group: tuple[Candidate, ...], vote: int, letter: str, before: Sequence[str]) -> str:
        asked = partial(group_messages, task, group, render("tournament_speech", letter=letter, speeches=before))
        said = inquire(self.ask, self.model, asked, words, self.max_mends, seed=vote)
        return fenced(f"speech-{letter}", said, SPEECH_BYTES)


JUDGES: dict[str, Callable[[Model, Ask], Judge]] = {"debate": Discriminator, "vote": ModelJudge}
"""By the name in the setting `tournament.judge`."""


def judge_of(
    wanted: TournamentSettings, proposing: str | None, models: Callable[[str], Model]
) -> Callable[[Ask], Judge] | None:
    """The judge that the settings ask for, as soon as it is said how it asks its model; None: nobody is asked.
    `proposing` is the model among the policies, if one is.

    Raises:
        ConfigError: a debate is wanted, and there is no model.
    """
    name = wanted.model or proposing
    if name is None and wanted.judge == "debate":
        raise ConfigError(
            "tournament.judge=debate needs a model, and policy `mutate` has none: set one with "
            "-c tournament.model=PROVIDER/NAME, or use tournament.judge=none"
        )
    return None if name is None or wanted.judge == "none" else partial(JUDGES[wanted.judge], models(name))


def _decide(
    model: Model,
    ask: Ask,
    mends: int,
    task: Task,
    group: tuple[Candidate, ...],
    vote: int,
    speeches: Sequence[str] = (),
) -> Ballot:
    question = render("tournament_question", letters=letters(group), speeches=speeches)
    return inquire(ask, model, partial(group_messages, task, group, question), partial(read_ballot, group), mends, vote)


def _abstention(group: Sequence[Candidate], why: Exception) -> Ballot:
    return Ballot(tuple(each.node for each in group), None, str(why))
