"""Brackets: who meets whom, in groups of so many, until one is left.

Law: as few comparisons as can be, `ceil((n - 1) / (group - 1))`, since each leaves out at most `group - 1`. Nobody has
more than one bye, and all byes are in the first stage; after it the number of those left is a power of `group`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from agent.run.ballots import Ballot
from agent.run.tree.tree import NodeId

__all__ = ["Match", "comparisons", "draw"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Match:
    """A group, and who went on."""

    group: tuple[NodeId, ...]
    winner: NodeId
    by: Literal["votes", "rule", "bye"]
    """`rule`: the votes were level, or there were none. What the cross-checks said decides then, if they were asked,
    and after it `agent.solver.tournament.facts.Entrant.merit`."""
    ballots: tuple[Ballot, ...] = ()
    """In the order of their numbers."""

    @property
    def tally(self) -> Counter[NodeId]:
        """Votes for each. Abstentions are for nobody."""
        return Counter(ballot.winner for ballot in self.ballots if ballot.winner is not None)


def comparisons(n: int, group: int) -> int:
    """Groups of two or more that are compared until one of `n` is left; each has as many ballots as there are votes.

    Raises:
        ValueError: `group` is below 2.
    """
    _require_group(group)
    return -(-max(0, n - 1) // (group - 1))


def draw(entrants: Sequence[_T], group: int) -> list[tuple[_T, ...]]:
    """The groups of the next stage, in order. One that is alone has a bye: it goes on without a comparison.

    Byes are spread evenly over the groups of the stage after.

    Raises:
        ValueError: `group` is below 2.
    """
    _require_group(group)
    left = 1
    while left * group < len(entrants):
        left *= group
    matches = comparisons(len(entrants) - left + 1, group)
    players = len(entrants) - left + matches
    sizes = [_even(number, players, matches) for number in range(matches)]
    groups, waiting = [], iter(entrants)
    for seat in range(left):
        size = sizes.pop() if _even(seat, matches, left) else 1
        groups.append(tuple(next(waiting) for _ in range(size)))
    return groups


def _even(place: int, things: int, places: int) -> int:
    """How many of so many things are at a place when they are spread evenly."""
    return (place + 1) * things // places - place * things // places


def _require_group(group: int) -> None:
    if group < 2:
        raise ValueError(f"group={group}: at least 2 are compared at a time")
