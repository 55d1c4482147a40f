"""Judges: models that pick the best of a group, directly or after a debate."""

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
from agent.run.cross_tests import UNTESTED, Matrix
from agent.run.rollouts import Candidate
from agent.settings import TournamentSettings
from agent.solver.tournament.exhibit import group_messages, letters, read_ballot
from agent.task import Task

__all__ = ["JUDGES", "Discriminator", "ModelJudge", "judge_of"]

SPEECH_BYTES = 8_000


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A judge that asks its model one question a vote."""

    model: Model
    ask: Ask = directly
    max_mends: int = 2
    """How often the model is asked again after an unreadable answer before the judge abstains."""

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.name

    def requests(self, size: int) -> int:
        """One."""
        return 1

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix = UNTESTED) -> Ballot:
        """As `agent.run.ballots.Judge.vote`. Abstains if no answer can be read or the question is too long for the
        model."""
        try:
            return _decide(self, task, group, vote, matrix)
        except (Abstained, PolicyError) as why:
            return _abstention(group, why)


@dataclass(frozen=True, slots=True)
class Discriminator:
    """A judge that holds a debate a vote: each candidate has an advocate who makes one speech, and a verdict follows
    that knows all speeches.

    SWE-Search picks the final answer by a debate of several agents (arXiv 2410.20285). One advocate per candidate is
    our own choice: it makes the speeches differ at any temperature. A vote takes one question for each candidate and
    one more, so that fewer votes can be afforded than with `ModelJudge`.
    """

    model: Model
    ask: Ask = directly
    max_mends: int = 2
    """As `ModelJudge.max_mends`, for each question."""

    @property
    def name(self) -> str:
        """The name of the model, marked as that of a debate."""
        return f"{self.model.name} (debate)"

    def requests(self, size: int) -> int:
        """A speech for each candidate, and the verdict."""
        return size + 1

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix = UNTESTED) -> Ballot:
        """As `agent.run.ballots.Judge.vote`. Abstains if a speech or the verdict cannot be read."""
        try:
            speeches = [self._speech(task, group, vote, matrix, letter) for letter in letters(group)]
            return _decide(self, task, group, vote, matrix, speeches)
        except (Abstained, PolicyError) as why:
            return _abstention(group, why)

    def _speech(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix, letter: str) -> str:
        question = partial(group_messages, task, group, matrix, render("tournament_speech", letter=letter, speeches=()))
        speech = inquire(self.ask, self.model, question, words, self.max_mends, seed=vote)
        return fenced(f"speech-{letter}", speech, SPEECH_BYTES)


JUDGES: dict[str, Callable[[Model, Ask], Judge]] = {"debate": Discriminator, "vote": ModelJudge}
"""Judges by their names in the setting `tournament.judge`."""


def judge_of(
    settings: TournamentSettings, proposing: str | None, models: Callable[[str], Model]
) -> Callable[[Ask], Judge] | None:
    """Makes the judge of the settings from a way to ask its model; None: there are no votes. `proposing` is the model
    among the policies, if there is one.

    Raises:
        ConfigError: a debate needs a model, and there is none.
    """
    name = settings.model or proposing
    if name is None and settings.judge == "debate":
        raise ConfigError(
            "tournament.judge=debate needs a model, and policy `mutate` has none: set one with "
            "-c tournament.model=PROVIDER/NAME, or use tournament.judge=none"
        )
    return None if name is None or settings.judge == "none" else partial(JUDGES[settings.judge], models(name))


def _decide(
    judge: ModelJudge | Discriminator,
    task: Task,
    group: tuple[Candidate, ...],
    vote: int,
    matrix: Matrix,
    speeches: Sequence[str] = (),
) -> Ballot:
    question = render("tournament_question", letters=letters(group), speeches=speeches)
    messages = partial(group_messages, task, group, matrix, question)
    return inquire(judge.ask, judge.model, messages, partial(read_ballot, group), judge.max_mends, vote)


def _abstention(group: Sequence[Candidate], why: Exception) -> Ballot:
    return Ballot(tuple(candidate.node for candidate in group), None, str(why))
