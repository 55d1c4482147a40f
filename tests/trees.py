"""Small trees for tests: nodes without a sandbox behind them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agent.actions import Observation, Shell
from agent.measure import SuiteReport
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, Step
from agent.run.tree.tree import Tree
from sandboxes import Snapshot


def node(
    id: int,
    parent: int | None = None,
    value: float = 0.0,
    *,
    state: str = "",
    terminal: bool = False,
    prior: float = 1.0,
    steps: tuple[Step, ...] = (),
) -> Node:
    """A node whose state is its own unless `state` says otherwise."""
    return Node(
        id=id,
        parents=() if parent is None else (parent,),
        steps=steps,
        snapshot=Snapshot(f"s{id}", state or f"digest-{id}"),
        report=SuiteReport(),
        evaluation=Evaluation(value, solved=value == 1.0),
        terminal=terminal,
        prior=prior,
    )


def tree(*nodes: Node) -> Tree:
    """A tree of these nodes, in this order."""
    made = Tree()
    for each in nodes:
        made.add(each)
    return made


PUSH = Step((Shell("git push"),), (Observation(""),))
"""A step that cannot be taken back."""


class Grown:
    """A tree that many things happened to, and what a journal would hold of them."""

    def __init__(self) -> None:
        self.tree = tree(node(0, value=0.2))
        self.events: list[tuple[str, tuple[Any, ...]]] = [("add", (self.tree[0],))]
        self.begun: list[int] = []

    def happens(self, what: str, at: int, other: int, value: float, prior: float, rare: bool) -> None:
        """One change, at nodes that are counted from the front again where there are not so many."""
        at, other = at % len(self.tree), other % len(self.tree)
        if what == "begin":
            self.begun.append(at)
            self.tree.begin(at)
        elif what == "end":
            if self.begun:
                self.tree.end(self.begun.pop(at % len(self.begun)))
        else:
            steps = (PUSH,) if rare else ()
            new = node(len(self.tree), at, value, prior=prior, steps=steps, terminal=rare and value > 0.8)
            details = {"add": (new,), "merge": (at, other), "measure_again": (at, Evaluation(value))}.get(what, (at,))
            self.events.append((what, details))
            getattr(self.tree, what)(*details)

    def again(self) -> Tree:
        """The tree that a later session makes of the same events, with the same work in flight."""
        made = Tree()
        for what, details in self.events:
            getattr(made, what)(*details)
        for at in self.begun:
            made.begin(at)
        return made


kinds = st.sampled_from(["add"] * 8 + ["begin", "end"] * 3 + ["merge", "fail", "close", "prune", "measure_again"])
shares = st.sampled_from([0.0, 0.2, 0.4, 0.5, 0.7, 0.9])
histories = st.lists(
    st.tuples(kinds, st.integers(0, 60), st.integers(0, 60), shares, shares, st.integers(0, 5).map(lambda n: n == 5)),
    max_size=60,
)
"""Changes for `Grown.happens`. Values are few, so that there are equal ones."""
