"""Voting: a judge is asked about groups. What it said before is not asked again; each answer is recorded at once."""

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
    """Where the votes of one tournament are cast.

    When a question cannot be asked (no budget, no provider), `error` says why, and nothing more is asked: what is
    decided after that is decided by the ballots that there are.
    """

    def __init__(
        self,
        task: Task,
        judge: Judge,
        votes: int,
        wave: int,
        known: Iterable[Ballot],
        record: Callable[[Ballot], None],
        workers: int = 1,
    ) -> None:
        if votes < 1:
            raise ValueError(f"votes={votes}: at least one vote is held on a group")
        self._task, self._judge, self._votes, self._wave = task, judge, votes, wave
        self._record, self._workers = record, workers
        cast = (ballot for ballot in known if ballot.round == wave and ballot.judge == judge.name)
        self._known = {(ballot.group, ballot.vote): ballot for ballot in cast}
        self.error: Exception | None = None

    def hold(self, group: tuple[Candidate, ...]) -> tuple[Ballot, ...]:
        """The ballots on a group; from vote to vote the first in order becomes the last."""
        if self._workers == 1:
            cast = [self._ballot(group, vote) for vote in range(self._votes)]
        else:
            with ThreadPoolExecutor(self._workers, initializer=handed_on()) as pool:
                cast = list(pool.map(partial(self._ballot, group), range(self._votes)))
        return tuple(ballot for ballot in cast if ballot is not None)

    def _ballot(self, group: tuple[Candidate, ...], vote: int) -> Ballot | None:
        """None: it cannot be asked for."""
        turn = vote % len(group)
        shown = group[turn:] + group[:turn]
        names = tuple(candidate.node for candidate in shown)
        if (known := self._known.get((names, vote))) is not None:
            return known
        if self.error is not None:
            return None
        try:
            said = self._judge.vote(self._task, shown, vote)
        except (BudgetSpent, RamifyError) as error:
            log.warning("no more votes are held: %s", error)
            self.error = error
            return None
        if said.winner is not None and said.winner not in names:
            raise ValueError(f"{self._judge.name} voted for {said.winner}, which is not one of {names}")
        ballot = replace(said, group=names, vote=vote, judge=self._judge.name, round=self._wave)
        self._record(ballot)
        return ballot
