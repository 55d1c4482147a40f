"""rank(): orders candidates by facts, then by recursive tournament voting among those with equal facts.

Invariant: tests that agents wrote guide the choice but never decide it. Judges see their results; they eliminate no
candidate before a vote, and they break ties only if there is no vote or the votes are tied.

Small groups are compared by several votes each, and the winners advance until one is left, as in recursive tournament
voting (arXiv 2604.16529), which found groups of 2 and 8 votes best. We added the draw of the groups
(`agent.solver.tournament.bracket`), and the rule that voting stops once the result is clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from random import Random

from agent.run.ballots import Ballot, Judge
from agent.run.cross_tests import UNTESTED, Matrix
from agent.run.rollouts import Candidate
from agent.run.tree.node import NodeId
from agent.solver.tournament.bracket import Match, comparisons, draw
from agent.solver.tournament.facts import Entrant, Merit, distinct
from agent.solver.tournament.strength import Wins, chances, strengths, wins
from agent.solver.tournament.voting import VoteCollector
from agent.task import Task

GROUP = 2
VOTES = 8
LEAST_VOTES = 2
"""The minimum number of votes on a group, even if few requests are left, so that each of two candidates is listed first
once."""
LARGEST = 5
"""The maximum number of candidates in one group if few requests are left."""
CrossTest = Callable[[Sequence[Candidate], Sequence[NodeId]], Matrix]
"""Runs the tests of each of these candidates in these nodes (`agent.solver.cross_testing.CrossCheck.matrix`)."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates with distinct patches, in order, and how the order was found."""

    order: tuple[Entrant, ...] = ()
    """The candidates, the winner first. The tests decide first; then, if there were votes, the last stage that a
    candidate won and its strength; then the scores of the cross tests; and finally `Entrant.merit`."""
    bracket: tuple[tuple[Match, ...], ...] = ()
    """The stages of the tournament; empty if facts alone decided or there is no judge."""
    strengths: Mapping[NodeId, float] = field(default_factory=dict)
    """Bradley-Terry strengths of the tournament's candidates, which add up to 1."""
    wins: Wins = field(default_factory=dict)
    """The wins that the strengths are computed from, counted over all ballots, also those of earlier rounds."""
    checked: Mapping[NodeId, float] = field(default_factory=dict)
    """The scores of the cross tests for the candidates with the best facts; empty if there were none."""
    error: Exception | None = None
    """Why votes are missing: the question did not fit in the budget, or the provider failed."""

    @property
    def winner(self) -> Candidate | None:
        """The best candidate; None if there is no candidate."""
        return self.order[0].candidate if self.order else None

    @property
    def tied(self) -> bool:
        """Whether all votes on the last group call its candidates equally good."""
        ballots = self.bracket[-1][0].ballots if self.bracket else ()
        return bool(ballots) and all(ballot.tie for ballot in ballots)

    def confidence(self) -> float | None:
        """The probability, in [0, 1], that the winner is the strongest of the tournament's candidates, if ballots are
        independent draws from a Bradley-Terry model (`agent.solver.tournament.strength.chances`, seeded by 0). Votes of
        one model on one question are not fully independent, so this is an overestimate. None: there was no
        tournament."""
        if not self.bracket:
            return None
        return chances(self.strengths.keys(), self.wins, Random(0))[self.order[0].node]


def rank(
    task: Task,
    candidates: Sequence[Candidate],
    judge: Judge | None,
    *,
    group: int = GROUP,
    votes: int = VOTES,
    requests: int | None = None,
    round: int = 1,  # noqa: A002  # its name everywhere
    known: Iterable[Ballot] = (),
    record: Callable[[Ballot], None] = lambda ballot: None,
    workers: int = 1,
    cross_test: CrossTest = lambda authors, nodes: UNTESTED,
) -> Ranking:
    """Rank candidates. `judge` is asked only about the candidates with the best facts, if there are several; None:
    there are no new votes.

    Candidates with the same change of the sources count as one. No vote is held on candidates that critics accepted and
    that pass each other's tests. `cross_test` is called once, before any vote, if at least two candidates have the best
    facts, or three if there is no judge: if one of only two fails a test, the test itself may be wrong. The judge sees
    the results. A group is voted on at most `votes` times; `requests` is the number of requests that all votes together
    should take (None: any number), which is exceeded if a group would have fewer than `LEAST_VOTES`; before that,
    groups are made larger. `known` ballots of this round and judge are not asked for again; each new ballot is passed
    to `record` before the next is asked for. `workers`: how many votes on a group are asked for at the same time.

    Raises:
        ValueError: `group` is below 2, or `votes` below 1.
        agent.budget.BudgetSpent: as `cross_test`.
    """
    entrants = sorted(distinct(candidates), key=lambda entrant: (entrant.facts, entrant.merit), reverse=True)
    equals = [entrant for entrant in entrants if entrant.facts == entrants[0].facts]
    others = entrants[len(equals) :]
    if len(equals) < 2:
        return Ranking(tuple(entrants))
    node_ids = [entrant.node for entrant in equals]
    authors = [each for entrant in equals for each in (entrant.candidate, *entrant.others)]
    matrix = cross_test(authors, node_ids) if judge is not None or len(equals) > 2 else UNTESTED
    checked = matrix.scores(node_ids) if matrix.rows else {}
    before = tuple(known)
    if judge is None or _settled(equals, matrix):
        return _ranking(equals, others, (), before, checked, None)
    group = _group_size(group, len(equals), requests, judge)
    votes = _affordable(votes, requests, _requests(group, len(equals), judge))
    collector = VoteCollector(task, judge, matrix, votes, round, before, record, workers)
    bracket = _run_stages(equals, group, collector, checked)
    return _ranking(equals, others, bracket, before, checked, collector.error)


def _settled(equals: Sequence[Entrant], matrix: Matrix) -> bool:
    """Whether critics accepted each candidate, and each passes the tests of all."""
    accepted = all(entrant.accepted for entrant in equals)
    tested = any(row.agreed for row in matrix.rows)
    return accepted and tested and all(score == 1.0 for score in matrix.scores([each.node for each in equals]).values())


def _requests(group: int, entrants: int, judge: Judge) -> int:
    """Return how many requests one vote on all groups of this size takes."""
    return comparisons(entrants, group) * judge.requests(min(group, entrants))


def _group_size(least: int, entrants: int, requests: int | None, judge: Judge) -> int:
    """Return the size of groups. It is larger than requested, up to `LARGEST`, if the requests are not enough for
    `LEAST_VOTES` on all groups."""
    sizes = range(least, max(least, min(LARGEST, entrants)) + 1)
    enough = (size for size in sizes if requests is None or _requests(size, entrants, judge) * LEAST_VOTES <= requests)
    return next(enough, sizes[-1])


def _affordable(votes: int, requests: int | None, each: int) -> int:
    """Return how many votes are held on each group if one vote on all groups takes `each` requests."""
    return votes if requests is None else min(votes, max(LEAST_VOTES, requests // each))


def _ranking(
    equals: Sequence[Entrant],
    others: Sequence[Entrant],
    bracket: tuple[tuple[Match, ...], ...],
    before: Sequence[Ballot],
    checked: Mapping[NodeId, float],
    error: Exception | None,
) -> Ranking:
    """Return the ranking after a tournament of the equals, if there was one, including the earlier ballots on them."""
    cast = (ballot for stage in bracket for match in stage for ballot in match.ballots)
    node_ids = [entrant.node for entrant in equals]
    won = wins(dict.fromkeys((*before, *cast)), node_ids)
    strong = strengths(node_ids, won) if won or bracket else {}
    last_won = {match.winner: number for number, stage in enumerate(bracket, 1) for match in stage}

    def sort_key(entrant: Entrant) -> tuple[int, float, tuple[float, Merit]]:
        return last_won.get(entrant.node, 0), strong.get(entrant.node, 0.0), _merit(checked, entrant)

    order = sorted(equals, key=sort_key, reverse=True)
    return Ranking((*order, *others), bracket, strong, won, checked, error)


def _merit(checked: Mapping[NodeId, float], entrant: Entrant) -> tuple[float, Merit]:
    """Return a sort key for candidates that votes do not order, the greater the better: the score of the cross tests,
    then `Entrant.merit`."""
    return checked.get(entrant.node, 0.0), entrant.merit


def _run_stages(
    entrants: Sequence[Entrant], group: int, collector: VoteCollector, checked: Mapping[NodeId, float]
) -> tuple[tuple[Match, ...], ...]:
    """Run all stages. Places are drawn by the digests of the patches, which depend on neither age nor length."""
    by_node = {entrant.node: entrant for entrant in entrants}
    left = sorted(by_node, key=lambda node: sha256(by_node[node].candidate.patch).digest())
    stages: list[tuple[Match, ...]] = []
    while len(left) > 1:
        stages.append(
            tuple(_match([by_node[node] for node in node_ids], collector, checked) for node_ids in draw(left, group))
        )
        left = [match.winner for match in stages[-1]]
    return tuple(stages)


def _match(group: Sequence[Entrant], collector: VoteCollector, checked: Mapping[NodeId, float]) -> Match:
    node_ids = tuple(entrant.node for entrant in group)
    if len(group) == 1:
        return Match(node_ids, node_ids[0], "bye")
    ballots = collector.collect(tuple(entrant.candidate for entrant in group))
    tally = Match(node_ids, node_ids[0], "votes", ballots).tally
    most = max(tally.values(), default=0)
    first = [entrant for entrant in group if tally[entrant.node] == most]
    if len(first) == 1:
        return Match(node_ids, first[0].node, "votes", ballots)
    return Match(node_ids, max(first, key=partial(_merit, checked)).node, "rule", ballots)
