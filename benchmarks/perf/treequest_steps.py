"""Times steps of TreeQuest on trees of a given size, in a separate environment with `treequest` installed.

    python -m benchmarks.perf.treequest_steps NODES

It builds a tree of this many nodes with each algorithm, then answers each line on stdin, `ALGORITHM STEPS`, with the
CPU seconds per step, with copying switched off. While trees are built, an index replaces `get_node`, which finds the
same node without sorting all of them; the timed steps are the library's own.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import treequest as tq
from treequest.algos.best_first_search import BestFirstSearchAlgo
from treequest.algos.tree import Tree

ALGORITHMS: dict[str, Callable[[], Any]] = {"StandardMCTS": tq.StandardMCTS, "BestFirstSearchAlgo": BestFirstSearchAlgo}


class Growth:
    """A tree that is grown with random scores."""

    def __init__(self, name: str, nodes: int) -> None:
        self._algorithm = ALGORITHMS[name]()
        self._state = self._algorithm.init_tree()
        self._index = [self._state.tree.root]
        get_node, add_node = Tree.get_node, Tree.add_node

        def indexed(tree: Any, *arguments: Any, **options: Any) -> Any:
            self._index.append(add_node(tree, *arguments, **options))
            return self._index[-1]

        Tree.get_node, Tree.add_node = (lambda tree, place: self._index[place + 1]), indexed
        self.grow(nodes)
        Tree.get_node, Tree.add_node = get_node, add_node

    def grow(self, steps: int) -> float:
        """CPU seconds per step."""
        began = time.process_time()
        for _ in range(steps):
            self._state = self._algorithm.step(self._state, {"expand": lambda _: (0, random.random())}, inplace=True)
        return (time.process_time() - began) / steps


def main() -> None:
    """Build the trees, then answer requests until stdin ends."""
    np.random.seed(0)
    random.seed(0)
    trees = {name: Growth(name, int(sys.argv[1])) for name in ALGORITHMS}
    for line in sys.stdin:
        name, steps = line.split()
        print(trees[name].grow(int(steps)), flush=True)


if __name__ == "__main__":
    main()
