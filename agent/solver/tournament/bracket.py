"""Brackets: arrange candidates in groups of a given size, stage by stage, until one is left.

Invariant: the number of comparisons is the smallest possible, `ceil((n - 1) / (group - 1))`, since each eliminates at
most `group - 1` candidates. No candidate has more than one bye, and all byes are in the first stage; after it, the
number of remaining candidates is a power of `group`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from agent.run.ballots import Ballot
from agent.run.tree.node import NodeId

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Match:
    """A group and its winner."""

    group: tuple[NodeId, ...]
    winner: NodeId
    by: Literal["votes", "rule", "bye"]
    """`rule`: the votes were tied, or there were none. Then the cross-checks decide, if they were run, and after them
    `agent.solver.tournament.facts.Entrant.merit`."""
    ballots: tuple[Ballot, ...] = ()
    """Ordered by vote number."""

    @property
    def tally(self) -> Counter[NodeId]:
        """The number of votes for each candidate, without ties and abstentions."""
        return Counter(ballot.winner for ballot in self.ballots if ballot.winner is not None)


def comparisons(n: int, group: int) -> int:
    """Return how many groups of two or more are compared until one of `n` candidates is left.

    Raises:
        ValueError: `group` is below 2.
    """
    _require_group(group)
    return -(-max(0, n - 1) // (group - 1))


def draw(entrants: Sequence[_T], group: int) -> list[tuple[_T, ...]]:
    """Return the groups of the next stage, in order. A group of one is a bye: its member advances without a comparison.
    Byes are spread evenly over the groups of the following stage.

    Raises:
        ValueError: `group` is below 2.
    """
    _require_group(group)
    left = 1
    while left * group < len(entrants):
        left *= group
    matches = comparisons(len(entrants) - left + 1, group)
    players = len(entrants) - left + matches
    sizes = [_spread(number, players, matches) for number in range(matches)]
    groups, waiting = [], iter(entrants)
    for seat in range(left):
        size = sizes.pop() if _spread(seat, matches, left) else 1
        groups.append(tuple(next(waiting) for _ in range(size)))
    return groups


def _spread(place: int, things: int, places: int) -> int:
    """Return how many of `things` are at `place` if they are spread evenly over `places`."""
    return (place + 1) * things // places - place * things // places


def _require_group(group: int) -> None:
    if group < 2:
        raise ValueError(f"group={group}: a group has at least 2 candidates")
