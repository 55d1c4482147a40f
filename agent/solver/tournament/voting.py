"""Voting: a judge is asked about groups. Recorded ballots are not asked for again; each new one is recorded at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from agent.budget import BudgetSpent
from agent.errors import RamifyError
from agent.prompts import handed_on
from agent.run.ballots import Ballot, Judge
from agent.run.rollouts import Candidate
from agent.task import Task

__all__ = ["Booth"]

log = logging.getLogger(__name__)


class Booth:
    """Collects the votes of one tournament.

    When a question cannot be asked (no budget, no provider), `error` says why and no further question is asked; the
    ballots so far decide.
    """

    def __init__(
        self,
        task: Task,
        judge: Judge,
        votes: int,
        number: int,
        known: Iterable[Ballot],
        record: Callable[[Ballot], None],
        workers: int = 1,
    ) -> None:
        if votes < 1:
            raise ValueError(f"votes={votes}: a group needs at least one vote")
        self._task, self._judge, self._votes, self._round = task, judge, votes, number
        self._record, self._workers = record, workers
        cast = (ballot for ballot in known if ballot.round == number and ballot.judge == judge.name)
        self._known = {(ballot.group, ballot.vote): ballot for ballot in cast}
        self.error: Exception | None = None

    def hold(self, group: tuple[Candidate, ...]) -> tuple[Ballot, ...]:
        """The ballots on a group. From one vote to the next the first candidate shown becomes the last."""
        if self._workers == 1:
            cast = [self._ballot(group, vote) for vote in range(self._votes)]
        else:
            with ThreadPoolExecutor(self._workers, initializer=handed_on()) as pool:
                cast = list(pool.map(partial(self._ballot, group), range(self._votes)))
        return tuple(ballot for ballot in cast if ballot is not None)

    def _ballot(self, group: tuple[Candidate, ...], vote: int) -> Ballot | None:
        """The ballot of one vote; None: the judge cannot be asked."""
        turn = vote % len(group)
        shown = group[turn:] + group[:turn]
        names = tuple(candidate.node for candidate in shown)
        if (known := self._known.get((names, vote))) is not None:
            return known
        if self.error is not None:
            return None
        try:
            ballot = self._judge.vote(self._task, shown, vote)
        except (BudgetSpent, RamifyError) as error:
            log.warning("no more votes are held: %s", error)
            self.error = error
            return None
        if ballot.winner is not None and ballot.winner not in names:
            raise ValueError(f"{self._judge.name} voted for {ballot.winner}, which is not one of {names}")
        ballot = replace(ballot, group=names, vote=vote, judge=self._judge.name, round=self._round)
        self._record(ballot)
        return ballot
