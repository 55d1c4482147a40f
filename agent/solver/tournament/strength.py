"""Strengths by the Bradley-Terry model: a candidate of strength s is preferred to one of strength t with probability
s / (s + t).

A ballot counts as a win of its winner over every other candidate of the group. The prior is uniform over the shares of
strength: with two candidates, w wins out of n ballots give (w + 1) / (n + 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from random import Random

from agent.run.ballots import Ballot
from agent.run.tree.node import NodeId

Wins = Mapping[tuple[NodeId, NodeId], int]
"""How often the first candidate was preferred to the second."""

ITERATIONS = 10_000
PRECISION = 1e-5
DRAWS = 2_000
FIRST_DRAWS = 100
"""The number of draws at the start that are discarded (burn-in)."""


def wins(ballots: Iterable[Ballot], among: Collection[NodeId]) -> Wins:
    """The wins among these candidates, counted from the ballots."""
    counts: Counter[tuple[NodeId, NodeId]] = Counter()
    for ballot in ballots:
        winner = ballot.winner
        if winner is not None and winner in among:
            counts.update((winner, other) for other in ballot.group if other != winner and other in among)
    return counts


def strengths(nodes: Collection[NodeId], won: Wins) -> dict[NodeId, float]:
    """Compute the most likely strengths (the mode of the posterior of their logarithms), which add up to 1."""
    scores, meetings = _scores(nodes, won), _meetings(won)
    current = dict.fromkeys(nodes, 1.0)
    for _ in range(ITERATIONS):
        rates = dict.fromkeys(nodes, 1.0)
        for (one, other), times in meetings.items():
            share = times / (current[one] + current[other])
            rates[one] += share
            rates[other] += share
        new = {node: scores[node] / rates[node] for node in nodes}
        done = all(abs(new[node] - current[node]) <= PRECISION * current[node] for node in nodes)
        current = new
        if done:
            break
    total = sum(current.values())
    return {node: strength / total for node, strength in current.items()}


def chances(nodes: Collection[NodeId], won: Wins, rng: Random, draws: int = DRAWS) -> dict[NodeId, float]:
    """Compute how likely each candidate is the strongest: the share of draws from the posterior (by Gibbs sampling) in
    which it is the strongest."""
    scores, meetings = _scores(nodes, won), _meetings(won)
    current, strongest = dict.fromkeys(nodes, 1.0), Counter[NodeId]()
    for number in range(draws + FIRST_DRAWS):
        rates = dict.fromkeys(nodes, 1.0)
        for (one, other), times in meetings.items():
            share = rng.gammavariate(times, 1.0 / (current[one] + current[other]))
            rates[one] += share
            rates[other] += share
        current = {node: rng.gammavariate(scores[node], 1.0 / rates[node]) for node in nodes}
        if number >= FIRST_DRAWS:
            strongest[max(current, key=current.__getitem__)] += 1
    return {node: strongest[node] / draws for node in nodes}


def _scores(nodes: Collection[NodeId], won: Wins) -> dict[NodeId, int]:
    """The wins of each candidate plus one, for the prior."""
    scores = dict.fromkeys(nodes, 1)
    for (winner, _), times in won.items():
        scores[winner] += times
    return scores


def _meetings(won: Wins) -> dict[tuple[NodeId, NodeId], int]:
    """How often two candidates were compared."""
    met: Counter[tuple[NodeId, NodeId]] = Counter()
    for (one, other), times in won.items():
        met[min(one, other), max(one, other)] += times
    return met
