"""Strengths by the Bradley-Terry model: of two, one is preferred with probability s / (s + t).

A ballot counts as a win of its winner over every other of the group. Before any ballot all shares of strength are
equally likely; for two candidates that is: every chance from 0 to 1 is, so that w wins of n make (w + 1) / (n + 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from random import Random

from agent.run.ballots import Ballot
from agent.run.tree.tree import NodeId

__all__ = ["Wins", "chances", "strengths", "wins"]

Wins = Mapping[tuple[NodeId, NodeId], int]
"""How often the first was preferred to the second."""

ITERATIONS = 10_000
PRECISION = 1e-5
DRAWS = 2_000
FIRST_DRAWS = 100
"""Left out: they depend on where the drawing begins."""


def wins(ballots: Iterable[Ballot], among: Collection[NodeId]) -> Wins:
    """What the ballots say of these candidates."""
    found: Counter[tuple[NodeId, NodeId]] = Counter()
    for ballot in ballots:
        winner = ballot.winner
        if winner is not None and winner in among:
            found.update((winner, other) for other in ballot.group if other != winner and other in among)
    return found


def strengths(nodes: Collection[NodeId], won: Wins) -> dict[NodeId, float]:
    """The most likely strengths (of their logarithms, the mode of the posterior); they add up to 1."""
    scores, meetings = _scores(nodes, won), _meetings(won)
    found = dict.fromkeys(nodes, 1.0)
    for _ in range(ITERATIONS):
        rates = dict.fromkeys(nodes, 1.0)
        for (one, other), times in meetings.items():
            share = times / (found[one] + found[other])
            rates[one] += share
            rates[other] += share
        new = {node: scores[node] / rates[node] for node in nodes}
        done = all(abs(new[node] - found[node]) <= PRECISION * found[node] for node in nodes)
        found = new
        if done:
            break
    whole = sum(found.values())
    return {node: strength / whole for node, strength in found.items()}


def chances(nodes: Collection[NodeId], won: Wins, rng: Random, draws: int = DRAWS) -> dict[NodeId, float]:
    """How likely each is the strongest: the share of draws from the posterior (by Gibbs sampling) in which it is."""
    scores, meetings = _scores(nodes, won), _meetings(won)
    found, strongest = dict.fromkeys(nodes, 1.0), Counter[NodeId]()
    for number in range(draws + FIRST_DRAWS):
        rates = dict.fromkeys(nodes, 1.0)
        for (one, other), times in meetings.items():
            share = rng.gammavariate(times, 1.0 / (found[one] + found[other]))
            rates[one] += share
            rates[other] += share
        found = {node: rng.gammavariate(scores[node], 1.0 / rates[node]) for node in nodes}
        if number >= FIRST_DRAWS:
            strongest[max(found, key=found.__getitem__)] += 1
    return {node: strongest[node] / draws for node in nodes}


def _scores(nodes: Collection[NodeId], won: Wins) -> dict[NodeId, int]:
    """Wins of each, and one more: the prior."""
    scores = dict.fromkeys(nodes, 1)
    for (winner, _), times in won.items():
        scores[winner] += times
    return scores


def _meetings(won: Wins) -> dict[tuple[NodeId, NodeId], int]:
    """How often two met, whoever was preferred."""
    met: Counter[tuple[NodeId, NodeId]] = Counter()
    for (one, other), times in won.items():
        met[min(one, other), max(one, other)] += times
    return met
