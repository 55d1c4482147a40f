"""Runs TreeQuest's searches on our landscapes, in a separate environment with `treequest` installed.

    python -m benchmarks.perf.treequest_side < asked.json > found.json

The input has the budgets to report at, the last of which is the limit, and runs as [algorithm, landscape, seed]. The
output has what `Curve.at` says for each run. TreeQuest gets what its interface takes, which is states and values; it
has no place for priors, costs, merges or exhausted nodes. A state that is reached twice continues with its next
proposal, and one without further proposals starts again with the first.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import treequest as tq
from treequest.algos.best_first_search import BestFirstSearchAlgo

from benchmarks.perf.landscape import Curve, Landscape, Move, State, measured
from benchmarks.perf.landscapes import LANDSCAPES

ALGORITHMS: dict[str, Callable[[], Any]] = {
    "StandardMCTS": tq.StandardMCTS,
    "StandardMCTS, 5 samples": lambda: tq.StandardMCTS(samples_per_action=5),
    "BestFirstSearchAlgo": BestFirstSearchAlgo,
    "BestFirstSearchAlgo, 5 samples": lambda: BestFirstSearchAlgo(num_samples=5),
    "ABMCTSA": tq.ABMCTSA,
}
"""Algorithms with the library's defaults; the two with a fixed width also with a larger one."""


class Run:
    """One search on one landscape."""

    def __init__(self, landscape: Landscape, budget: float) -> None:
        self.curve = Curve()
        self._landscape = landscape
        self._budget = budget
        self._asked: Counter[State] = Counter()
        self._answer = (measured(landscape, landscape.start), landscape.value(landscape.start))
        self.curve.spend(0.0, self._answer[1])

    def grow(self, algorithm: Any) -> Curve:
        """Run until an optimum is measured or the budget is spent."""
        tree = algorithm.init_tree()
        try:
            while self._answer[0] < 1.0:
                tree = algorithm.step(tree, {"expand": self._expand}, inplace=True)
        except _Spent:
            pass
        return self.curve

    def _expand(self, state: State | None) -> tuple[State, float]:
        move = self._next(self._landscape.start if state is None else state)
        if self.curve.spent + move.cost > self._budget:
            raise _Spent
        value, true = measured(self._landscape, move.state), self._landscape.value(move.state)
        self._answer = max(self._answer, (value, true), key=lambda pair: pair[0])
        self.curve.spend(move.cost, self._answer[1])
        return move.state, value

    def _next(self, state: State) -> Move:
        move = self._landscape.move(state, self._asked[state])
        if move is None:
            self._asked[state] = 0
            move = self._landscape.move(state, 0) or Move(state)
        self._asked[state] += 1
        return move


class _Spent(Exception):
    """The next expansion does not fit the budget."""


def main() -> None:
    """Make the runs requested on stdin, and print the results."""
    request = json.load(sys.stdin)
    results = []
    for name, landscape, seed in request["runs"]:
        np.random.seed(seed)
        random.seed(seed)
        curve = Run(LANDSCAPES[landscape](seed), request["at"][-1]).grow(ALGORITHMS[name]())
        results.append([curve.at(budget) for budget in request["at"]])
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
