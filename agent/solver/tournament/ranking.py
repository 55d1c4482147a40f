"""rank(): facts first, then recursive tournament voting among those that facts leave equal.

Law: tests that agents wrote may guide and never decide. They put nobody out before a vote, and say who goes first only
where nobody votes, or where votes are level.

Small groups are compared by several votes each and the winners go on until one is left, as in recursive tournament
voting (arXiv 2604.16529), which found groups of 2 and 8 votes best. How the groups are drawn is our own
(`agent.solver.tournament.bracket`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random

from agent.run.ballots import Ballot, Judge
from agent.run.rollouts import Candidate
from agent.run.tree.tree import NodeId
from agent.solver.tournament.bracket import Match, draw
from agent.solver.tournament.facts import Entrant, Merit, distinct
from agent.solver.tournament.strength import Wins, chances, strengths, wins
from agent.solver.tournament.voting import Booth
from agent.task import Task

__all__ = ["Ranking", "rank"]

GROUP = 2
VOTES = 8
Ties = Callable[[Sequence[Candidate]], Mapping[NodeId, float]]
LEAST_TIES = 3
"""Between two candidates a test that only one of them passes may be wrong as well as the other."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates with distinct patches, and how they came into their order."""

    order: tuple[Entrant, ...] = ()
    """The winner first. What the tests say decides; among equals how far each came in the tournament, and its strength;
    then, or where there was none, what `ties` said, and `Entrant.merit`."""
    bracket: tuple[tuple[Match, ...], ...] = ()
    """The stages of the tournament; none where facts alone decided, or nobody was asked."""
    strengths: Mapping[NodeId, float] = field(default_factory=dict)
    """Bradley-Terry strengths of those that took part, which add up to 1."""
    wins: Wins = field(default_factory=dict)
    """What the strengths are made of: all ballots on them, those of earlier waves included."""
    checked: Mapping[NodeId, float] = field(default_factory=dict)
    """Of those that were best by facts: what `ties` said, where it was asked."""
    error: Exception | None = None
    """Why votes are missing: the question did not fit in the budget, or the provider failed."""

    @property
    def winner(self) -> Candidate | None:
        """None: there was no candidate."""
        return self.order[0].candidate if self.order else None

    def confidence(self) -> float | None:
        """How likely the winner is the strongest of those that took part, in [0, 1], if ballots are independent draws
        from a Bradley-Terry model (`agent.solver.tournament.strength.chances`, seeded by 0). The votes of one model on
        one question are less than independent, so that this is rather too much. None where there was no tournament."""
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
    round: int = 1,  # noqa: A002  # the name of a wave everywhere
    known: Iterable[Ballot] = (),
    record: Callable[[Ballot], None] = lambda ballot: None,
    workers: int = 1,
    ties: Ties | None = None,
) -> Ranking:
    """Order candidates. `judge` is asked only about those that are best by facts, if they are several; None: nobody is
    asked.

    Candidates with the same patch are one. Of the ballots that are `known`, those of this round and judge are not asked
    for again; each new one is given to `record` before the next is asked for. `workers`: of the votes on a group so
    many are asked for at the same time. `ties` says of three or more that are best by facts how good each is, the more
    the better (`agent.solver.cross_testing`). It is asked once at most: where there is no judge, or when all votes were
    held and are level.

    Raises:
        ValueError: `group` is below 2, or `votes` below 1.
        agent.budget.BudgetSpent: as `ties`.
    """
    entrants = sorted(distinct(candidates), key=lambda each: (each.facts, each.merit), reverse=True)
    equals = [each for each in entrants if each.facts == entrants[0].facts]
    others = entrants[len(equals) :]
    merits = _Merits(equals, ties)
    if judge is None or len(equals) < 2:
        merits.ask()
        return Ranking((*sorted(equals, key=merits.of, reverse=True), *others), checked=merits.checked)
    before = tuple(known)
    booth = Booth(task, judge, votes, round, before, record, workers)
    bracket = _play(equals, group, booth, merits)
    return _ranking(equals, others, bracket, before, merits, booth.error)


def _ranking(
    equals: Sequence[Entrant],
    others: Sequence[Entrant],
    bracket: tuple[tuple[Match, ...], ...],
    before: Sequence[Ballot],
    merits: _Merits,
    error: Exception | None,
) -> Ranking:
    """What a tournament of the equals came to, with the ballots on them from before it."""
    cast = (ballot for stage in bracket for match in stage for ballot in match.ballots)
    names = [each.node for each in equals]
    won = wins(dict.fromkeys((*before, *cast)), names)
    strong = strengths(names, won)
    came = {match.winner: number for number, stage in enumerate(bracket, 1) for match in stage}
    order = sorted(equals, key=lambda each: (came.get(each.node, 0), strong[each.node], merits.of(each)), reverse=True)
    return Ranking((*order, *others), bracket, strong, won, merits.checked, error)


class _Merits:
    """Who of those that are best by facts goes first where votes do not say it."""

    def __init__(self, equals: Sequence[Entrant], ties: Ties | None) -> None:
        self._candidates = [each.candidate for each in equals]
        self._ties = ties if len(equals) >= LEAST_TIES else None
        self.checked: Mapping[NodeId, float] = {}

    def ask(self) -> None:
        """Ask the ties, unless that was done."""
        ties, self._ties = self._ties, None
        if ties is not None:
            self.checked = ties(self._candidates)

    def of(self, entrant: Entrant) -> tuple[float, Merit]:
        """The greater is better: what the ties said, if they were asked, then `Entrant.merit`."""
        return self.checked.get(entrant.node, 0.0), entrant.merit


def _play(entrants: Sequence[Entrant], group: int, booth: Booth, merits: _Merits) -> tuple[tuple[Match, ...], ...]:
    """All stages. Places are drawn by lot: by the digests of the patches, which neither age nor length decides."""
    by_node = {each.node: each for each in entrants}
    left = sorted(by_node, key=lambda node: sha256(by_node[node].candidate.patch).digest())
    stages: list[tuple[Match, ...]] = []
    while len(left) > 1:
        stages.append(tuple(_match([by_node[node] for node in names], booth, merits) for names in draw(left, group)))
        left = [match.winner for match in stages[-1]]
    return tuple(stages)


def _match(group: Sequence[Entrant], booth: Booth, merits: _Merits) -> Match:
    names = tuple(each.node for each in group)
    if len(group) == 1:
        return Match(names, names[0], "bye")
    ballots = booth.hold(tuple(each.candidate for each in group))
    tally = Match(names, names[0], "votes", ballots).tally
    most = max(tally.values(), default=0)
    first = [each for each in group if tally[each.node] == most]
    if len(first) == 1:
        return Match(names, first[0].node, "votes", ballots)
    if booth.error is None:
        merits.ask()
    return Match(names, max(first, key=merits.of).node, "rule", ballots)
