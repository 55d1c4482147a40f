"""Voting: asks a judge about groups until the result is clear.

Recorded ballots are not asked for again; each new one is recorded at once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from agent.budget import BudgetSpent
from agent.errors import RamifyError
from agent.prompts import handed_on
from agent.run.ballots import Ballot, Judge
from agent.run.cross_tests import Matrix
from agent.run.rollouts import Candidate
from agent.task import Task

log = logging.getLogger(__name__)


class VoteCollector:
    """Collects the votes of one tournament.

    When a question cannot be asked (no budget, no provider), `error` says why and no further question is asked; the
    ballots so far decide.
    """

    def __init__(
        self,
        task: Task,
        judge: Judge,
        matrix: Matrix,
        votes: int,
        number: int,
        known: Iterable[Ballot],
        record: Callable[[Ballot], None],
        workers: int = 1,
    ) -> None:
        if votes < 1:
            raise ValueError(f"votes={votes}: a group needs at least one vote")
        self._task, self._judge, self._matrix, self._votes, self._round = task, judge, matrix, votes, number
        self._record, self._workers = record, workers
        cast = (ballot for ballot in known if ballot.round == number and ballot.judge == judge.name)
        self._known = {(ballot.group, ballot.vote): ballot for ballot in cast}
        self.error: Exception | None = None

    def collect(self, group: tuple[Candidate, ...]) -> tuple[Ballot, ...]:
        """Collect ballots on a group until the result is clear: the remaining votes cannot overturn the lead, or the
        judge saw each candidate in each place and found none better. From one vote to the next, the first candidate
        shown becomes the last."""
        ballots: list[Ballot] = []
        vote = 0
        while (needed := _votes_needed(ballots, len(group), self._votes - vote)) > 0:
            votes = range(vote, vote + min(self._workers, needed))
            ballots += self._cast(group, votes)
            vote = votes.stop
        return tuple(ballots)

    def _cast(self, group: tuple[Candidate, ...], votes: Sequence[int]) -> list[Ballot]:
        """Return the ballots of these votes, which are asked for at the same time. Votes that the judge cannot be asked
        for are left out."""
        if len(votes) == 1:
            cast = [self._ballot(group, votes[0])]
        else:
            with ThreadPoolExecutor(self._workers, initializer=handed_on()) as pool:
                cast = list(pool.map(partial(self._ballot, group), votes))
        return [ballot for ballot in cast if ballot is not None]

    def _ballot(self, group: tuple[Candidate, ...], vote: int) -> Ballot | None:
        """Return the ballot of one vote; None if the judge cannot be asked."""
        turn = vote % len(group)
        shown = group[turn:] + group[:turn]
        names = tuple(candidate.node for candidate in shown)
        if (known := self._known.get((names, vote))) is not None:
            return known
        if self.error is not None:
            return None
        try:
            ballot = self._judge.vote(self._task, shown, vote, self._matrix)
        except (BudgetSpent, RamifyError) as error:
            log.warning("no more votes are held: %s", error)
            self.error = error
            return None
        if ballot.winner is not None and ballot.winner not in names:
            raise ValueError(f"{self._judge.name} voted for {ballot.winner}, which is not one of {names}")
        ballot = replace(ballot, group=names, vote=vote, judge=self._judge.name, round=self._round)
        self._record(ballot)
        return ballot


def _votes_needed(ballots: Sequence[Ballot], size: int, left: int) -> int:
    """Return the minimum number of the votes left on a group of this size that can make the result clear; 0: it is
    clear."""
    if len(ballots) >= size and all(ballot.tie for ballot in ballots):
        return 0
    tally = Counter(ballot.winner for ballot in ballots if ballot.winner is not None)
    first, second = (*(count for _, count in tally.most_common(2)), 0, 0)[:2]
    lead = first - second
    return 0 if lead > left else min(left, (left - lead) // 2 + 1)
