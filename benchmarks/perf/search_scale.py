"""The cost of selecting and recording in a small and in a large tree, by algorithm, compared with TreeQuest's step.

    python -m benchmarks.perf.search_scale --nodes 1000,20000

A step is what the engine does with a tree for each node: select, begin, end, add. Values are random, and nothing is
written to disk. Trees are grown by the algorithm itself. Times are CPU seconds. A new node costs a little work for each
of its ancestors, so a deep tree costs more: a beam of 64 is 40 levels deep at 20,000 nodes. `strategies` ends long
before a tree is large.

The deepest tree is a chain with rising values. It is grown with a selection by each algorithm at every step, which
descends the whole chain if the algorithm does; then an algorithm that has not seen the chain selects in it once, as in
a resumed run. If the time is proportional to the length, growing a chain takes twice as long as growing half of it.
"""

from __future__ import annotations

import subprocess
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from random import Random
from typing import Any

from agent.measure import SuiteReport
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node
from agent.run.tree.tree import Tree
from agent.search import Search
from agent.search.beam import Beam
from agent.search.best_of_n import BestOfN
from agent.search.clade import Clade
from agent.search.linear import Linear
from agent.search.mcts import Mcts
from agent.search.registry import SEARCHES
from benchmarks.perf import venvs
from benchmarks.perf.bench import say
from benchmarks.perf.script import machine
from benchmarks.perf.table import Row, at_most, less, markdown
from benchmarks.perf.timing import Sample, Way, interleave, ratio
from sandboxes import Snapshot

ENDLESS: dict[str, Callable[[], Search]] = {
    **{name: SEARCHES[name] for name in SEARCHES if name not in ("linear", "strategies")},
    "beam": lambda: Beam(width=64, children=8, depth=10**6),
    "best_of_n": lambda: BestOfN(n=10**6),
    "mcts, puct": lambda: Mcts(formula="puct"),
    "mcts, max": lambda: Mcts(value="max", prior_visits=0.2),
}
"""Searches with settings that let them continue for ever; otherwise with the defaults."""
PEERS = {"mcts": "StandardMCTS", "best_first": "BestFirstSearchAlgo"}
"""The algorithms of TreeQuest that ours are compared with."""
CHAINS: dict[str, Callable[[], Search]] = {
    "linear": Linear,
    **ENDLESS,
    "mcts, one child each": lambda: Mcts(widen=0.5, alpha=0, depth=10**6),
    "clade, one child each": lambda: Clade(width=0.01),
}
"""Searches that select in a chain. The last two descend all of it because of their settings, `adaptive` at random."""
STEPS, PEER_STEPS = 100, 10
"""Steps in a round."""
N = 9
GROWTH, FACTOR = 1.5, 100.0
"""The goals: how much more expensive a step may become, and how much cheaper than TreeQuest's it has to be."""


class Growth:
    """A tree that a search grows with random values and priors."""

    def __init__(self, search: Search, nodes: int = 1) -> None:
        self.tree = Tree()
        self._search = search
        self._rng = Random(nodes)
        self._add(())
        self.grow(nodes - 1)

    def grow(self, steps: int) -> float:
        """CPU seconds per step."""
        began = time.process_time()
        for number in range(steps):
            self._step(number)
        return (time.process_time() - began) / steps if steps else 0.0

    def _step(self, number: int) -> None:
        tree, choice = self.tree, self._search.select(self.tree, Random(number))
        assert choice is not None, f"{self._search} chose nothing at {len(tree)} nodes"
        tree.begin(choice.node, choice.act, choice.other)
        tree.end(choice.node, choice.act, choice.other)
        if choice.act == "measure":
            tree.measure_again(choice.node, Evaluation(self._rng.random() * 0.99))
        else:
            fused = choice.act == "fuse"
            self._add((choice.node,) if choice.other is None else (choice.node, choice.other), "fuse" if fused else "")

    def _add(self, parents: tuple[int, ...], kind: str = "") -> None:
        value, prior = self._rng.random() * 0.99, self._rng.random()
        self.tree.add(_node(len(self.tree), parents, value, prior, kind))


def _node(number: int, parents: tuple[int, ...], value: float, prior: float = 1.0, kind: str = "") -> Node:
    state = Snapshot(f"s{number}", f"d{number}")
    return Node(number, parents, (), state, SuiteReport(), Evaluation(value), prior=prior, kind=kind)


def rows(given: Namespace) -> Iterator[Row]:
    """A row for each algorithm, and another for each that is compared with TreeQuest."""
    small, large = given.nodes
    names = [name for name in given.searches.split(";") if name]
    with ExitStack() as held:
        ways: dict[str, Way] = {}
        for name in names:
            for nodes in given.nodes:
                say(f"{name}: a tree of {nodes} nodes")
                ways[f"{name} {nodes}"] = partial(Growth(ENDLESS[name](), nodes).grow, STEPS)
        peers = {name: PEERS[name] for name in names if name in PEERS and not given.without_treequest}
        if peers:
            ask = held.enter_context(_Peer(str(venvs.interpreter(venvs.TREEQUEST, given.treequest)), large)).ask
            ways |= {peer: partial(ask, peer) for peer in peers.values()}
        taken = interleave(ways, given.n, Random(given.seed))
    for name in names:
        yield _growth(name, taken[f"{name} {small}"], taken[f"{name} {large}"], small, large)
    for name, peer in peers.items():
        what = f"a step at {large} nodes: {name} beside {venvs.TREEQUEST}'s {peer}"
        yield less(what, taken[f"{name} {large}"], taken[peer], FACTOR)
    for name in given.chains.split(";"):
        if name:
            yield from _chain(name, given.chain)


def _growth(name: str, few: Sample, many: Sample, small: int, large: int) -> Row:
    ours = f"{many} beside {few}"
    return at_most(
        f"a step at {large} nodes beside {small}: {name}", ours, len(few.seconds), ratio(many, few), GROWTH, "x"
    )


def chained(search: Search, nodes: int) -> list[float]:
    """CPU seconds to grow half of a chain, to grow all of it, and to select in it after a resume."""
    tree, began, seconds = Tree(), time.process_time(), list[float]()
    for number in range(nodes):
        if number:
            search.select(tree, Random(number))
            tree.begin(number - 1)
            tree.end(number - 1)
        tree.add(_node(number, (number - 1,) if number else (), 0.99 * number / nodes))
        if number + 1 in (nodes // 2, nodes):
            seconds.append(time.process_time() - began)
    began, resumed = time.process_time(), Tree()
    for node in tree:
        resumed.add(node)
    search.select(resumed, Random(0))
    return [*seconds, time.process_time() - began]


def _chain(name: str, nodes: int) -> Iterator[Row]:
    say(f"{name}: a chain of {nodes} nodes")
    half, whole, resumed = chained(CHAINS[name](), nodes)
    longer = f"{whole / half:.1f}x of {nodes // 2}"
    yield Row(f"a chain of {nodes} nodes, grown: {name}", f"{whole:.2f} s", f"{half:.2f} s", 1, longer)
    yield Row(f"a chain of {nodes} nodes, resumed: {name}", f"{resumed:.2f} s", "", 1, f"{resumed:.2f} s")


class _Peer:
    """A process that holds TreeQuest's trees and makes steps on request."""

    def __init__(self, python: str, nodes: int) -> None:
        say(f"TreeQuest's trees of {nodes} nodes")
        command = [python, "-m", "benchmarks.perf.treequest_steps", str(nodes)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> _Peer:
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.communicate()

    def ask(self, algorithm: str) -> float:
        """CPU seconds per step."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{algorithm} {PEER_STEPS}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def main() -> None:
    """Read the command line, print the table."""
    parser = ArgumentParser(prog="python -m benchmarks.perf.search_scale", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-n", type=int, default=N, metavar="N", help=f"rounds; default: {N}")
    parser.add_argument("--nodes", type=_sizes, default=(1_000, 20_000), metavar="SMALL,LARGE")
    parser.add_argument("--chain", type=int, default=5_000, metavar="N", help="nodes of the chain; default: 5000")
    parser.add_argument("--chains", default=";".join(CHAINS), metavar="NAMES", help="searches for the chain")
    parser.add_argument("--searches", default=";".join(ENDLESS), metavar="NAMES", help="separated by semicolons")
    parser.add_argument("--seed", type=int, default=0, help="the seed for the order")
    parser.add_argument("--treequest", default="", metavar="VENV", help="made if missing; default: in the cache")
    parser.add_argument("--without-treequest", action="store_true")
    found = list(rows(parser.parse_args()))
    print(f"{markdown(found)}\n\n{machine()}")


def _sizes(text: str) -> tuple[int, int]:
    small, large = (int(part) for part in text.split(","))
    return small, large


if __name__ == "__main__":
    main()
