"""Small trees for tests: nodes without a sandbox behind them."""

from __future__ import annotations

from agent.measure import SuiteReport
from agent.tree import Node, Tree
from agent.value import Evaluation
from sandboxes import Snapshot


def node(id: int, parent: int | None = None, value: float = 0.0, *, state: str = "", terminal: bool = False) -> Node:
    """A node whose state is its own unless `state` says otherwise."""
    return Node(
        id=id,
        parents=() if parent is None else (parent,),
        steps=(),
        snapshot=Snapshot(f"s{id}", state or f"digest-{id}"),
        report=SuiteReport(),
        evaluation=Evaluation(value, solved=value == 1.0),
        terminal=terminal,
    )


def tree(*nodes: Node) -> Tree:
    """A tree of these nodes, in this order."""
    made = Tree()
    for each in nodes:
        made.add(each)
    return made
