"""Simulates how often a tournament finds the best of N candidates, compared with a flat vote and a noisy score.

    python -m benchmarks.perf.tournament_sim --seeds 500

The judge compares two candidates and is right with probability q, independently each time and however close they are.
Qualities are random ranks.

- The tournament is the real `agent.solver.tournament.rank`: n - 1 pairs with `votes` ballots each. Ties are broken by a
  rule that is independent of quality.
- A flat vote is on one group of all candidates, and most votes win. A ballot on all compares them one after another, in
  the order shown (rotated from vote to vote), with the one preferred so far: n - 1 comparisons, while a ballot on a
  pair is one. So three exchange rates are shown: as many votes on the group as on each pair of the tournament (the same
  number of comparisons); the same number of candidates read (what a model is paid for); the same number of ballots,
  each of which reads n / 2 times as much as one of the tournament. `--edge` is how much better than chance a comparison
  among all is, as a share of the same in a pair: 1 means no worse.
- A score is a number for a single candidate: its rank plus normal noise, such that two scores put two random candidates
  in the right order with probability q. Votes are shared equally; the highest mean wins.

Nothing is timed, so other load on the machine changes nothing.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from math import sqrt
from random import Random
from statistics import NormalDist
from typing import Any

from agent.run.ballots import Ballot, Judge
from agent.run.cross_tests import UNTESTED, Matrix
from agent.run.grade import Grade
from agent.run.rollouts import Candidate, Rollout, Summary
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import NodeId
from agent.solver.tournament import comparisons, rank
from agent.task import Task
from benchmarks.perf.table import head, line, share
from sandboxes import Workspace

_Prefers = Callable[[int, int], int]
"""Returns which of two nodes a judge prefers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of the simulation."""

    n: int = 16
    votes: int = 8
    """The number of votes on each pair."""
    q: float = 0.8
    """The probability that the judge is right about a pair."""
    edge: float = 1.0
    """The share of `q - 1/2` that remains when the judge sees all candidates at once."""

    @property
    def ballots(self) -> int:
        """The number of ballots in the tournament."""
        return self.votes * comparisons(self.n, 2)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A judge of pairs."""

    prefers: _Prefers
    name: str = "simulated"

    def requests(self, size: int) -> int:
        """One."""
        return 1

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix = UNTESTED) -> Ballot:
        """A ballot with the judge's preference."""
        one, other = (candidate.node for candidate in group)
        return Ballot((one, other), self.prefers(one, other))


def winner(candidates: Sequence[Candidate], judge: Judge | None, **how: Any) -> NodeId:
    """The node of the candidate that `rank` puts first; `how` is as for `rank`."""
    first = rank(Task("simulated", "", Workspace(), ""), candidates, judge, **how).winner
    assert first is not None
    return first.node


def found(way: str, setting: Setting, seed: int) -> bool:
    """Whether the best candidate is found."""
    rng = Random(f"{seed}/{setting.n}")
    nodes = list(range(1, setting.n + 1))
    rng.shuffle(nodes)
    return WAYS[way](setting, {node: quality for quality, node in enumerate(nodes)}, rng) == nodes[-1]


def _tournament(setting: Setting, qualities: Mapping[int, int], rng: Random) -> int:
    judge = Simulated(_right(qualities, setting.q, rng))
    return winner([_candidate(node) for node in sorted(qualities)], judge, votes=setting.votes)


def _flat(ballots: Callable[[Setting], int]) -> _Way:
    def way(setting: Setting, qualities: Mapping[int, int], rng: Random) -> int:
        prefers = _right(qualities, 0.5 + (setting.q - 0.5) * setting.edge, rng)
        shown, tally = deque(rng.sample(sorted(qualities), setting.n)), Counter[int]()
        for _ in range(ballots(setting)):
            tally[reduce(prefers, shown)] += 1
            shown.rotate(-1)
        return max(sorted(tally), key=tally.__getitem__)

    return way


def _scored(setting: Setting, qualities: Mapping[int, int], rng: Random) -> int:
    sigma, per_candidate = noise(setting.n, setting.q), setting.ballots / setting.n
    return max(qualities, key=lambda node: rng.gauss(qualities[node], sigma / sqrt(per_candidate)))


_Way = Callable[[Setting, Mapping[int, int], Random], int]

WAYS: dict[str, _Way] = {
    "tournament": _tournament,
    "flat, votes of a pair": _flat(lambda setting: setting.votes),
    "flat, equal reading": _flat(lambda setting: setting.ballots * 2 // setting.n),
    "flat, equal ballots": _flat(lambda setting: setting.ballots),
    "score, equal votes": _scored,
}
"""Ways to choose one of n, by name."""


def _right(qualities: Mapping[int, int], q: float, rng: Random) -> _Prefers:
    def prefers(one: int, other: int) -> int:
        better, worse = (one, other) if qualities[one] > qualities[other] else (other, one)
        return better if rng.random() < q else worse

    return prefers


@cache
def _candidate(node: int) -> Candidate:
    """A candidate that is equal to all others by the facts."""
    evaluation, summary, patch = Evaluation(1.0, True), Summary(node, "", "solved"), b"%9d" % node
    return Candidate(Rollout((0, node), node, 1), patch, evaluation, summary, Grade.SOLVED, patch, patch)


@cache
def noise(n: int, q: float) -> float:
    """The standard deviation of scores of the ranks 0 to n - 1 for which two scores put two random candidates in the
    right order with probability `q`, in (0.5, 1)."""
    low, high = 1e-3, 1e3
    for _ in range(60):
        middle = sqrt(low * high)
        low, high = (middle, high) if _in_order(n, middle) > q else (low, middle)
    return low


def _in_order(n: int, sigma: float) -> float:
    right = NormalDist().cdf
    pairs = sum(n - gap for gap in range(1, n))
    return sum((n - gap) * right(gap / (sqrt(2) * sigma)) for gap in range(1, n)) / pairs


def main() -> None:
    """Read the command line, simulate, print the table."""
    given = _given()
    print(head("q", *WAYS))
    for q in given.q:
        setting = Setting(given.n, given.votes, q, given.edge)
        found_best = (sum(found(way, setting, seed) for seed in range(given.seeds)) for way in WAYS)
        print(line(f"{q:g}", *(share(times, given.seeds) for times in found_best)), flush=True)
    print(f"\n{given.n} candidates, {setting.votes} votes on a pair, {setting.ballots} ballots, edge {given.edge:g};")
    print(f"shares of {given.seeds} seeds with their 95 % intervals")


def _given() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.perf.tournament_sim", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=500, metavar="N")
    parser.add_argument("-n", type=int, default=16, metavar="N", help="candidates")
    parser.add_argument("--votes", type=int, default=8, metavar="N", help="on each pair of the tournament")
    parser.add_argument("--q", type=_numbers, default=(0.6, 0.7, 0.8, 0.9), metavar="LIST", help="each in (0.5, 1)")
    parser.add_argument("--edge", type=float, default=1.0, metavar="SHARE", help="of the judge, in a flat ballot")
    return parser.parse_args()


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


if __name__ == "__main__":
    main()
