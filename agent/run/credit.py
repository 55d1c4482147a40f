"""Credit: what a node is worth by the outcomes of the leaves below it.

An outcome is a leaf's: 1 where it is solved and no verification refuted it, else 0; or its value by its tests. A leaf
counts once, below the parent that it was made from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree

__all__ = ["Outcome", "Worth", "outcome", "require_outcome", "worths"]

Outcome = Literal["solved", "value"]
"""What is averaged: 0 or 1 (solved), or the leaf's value in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Worth:
    """The outcomes of the leaves below a node, or of the node itself if it is a leaf."""

    value: float
    """Their mean outcome, in [0, 1]."""
    leaves: int
    solved: int

    def __add__(self, other: Worth) -> Worth:
        leaves = self.leaves + other.leaves
        value = (self.value * self.leaves + other.value * other.leaves) / leaves
        return Worth(value, leaves, self.solved + other.solved)


def require_outcome(by: str) -> None:
    """Raises ValueError if it is not an outcome."""
    if by not in ("solved", "value"):
        raise ValueError(f"outcome={by!r}: give solved or value")


def outcome(run: Run, by: Outcome = "solved") -> Callable[[Node], float]:
    """The outcome of a leaf, in [0, 1]; 1 only if it is solved."""

    def found(leaf: Node) -> float:
        return float(run.solved(leaf.id)) if by == "solved" or leaf.evaluation.solved else leaf.value

    return found


def worths(tree: Tree, of: Callable[[Node], float]) -> dict[NodeId, Worth]:
    """The worth of every node; `of` gives the outcome of a leaf. A node's worth is the mean of its children's, each
    counted as often as it has leaves (the Monte Carlo values of TreePS-RAG, arXiv 2601.06922)."""
    found: dict[NodeId, Worth] = {}
    for node in reversed(list(tree)):
        first, *others = [found[child.id] for child in tree.children(node.id)] or [_leaf(of(node))]
        found[node.id] = sum(others, first)
    return found


def _leaf(value: float) -> Worth:
    return Worth(value, 1, int(value == 1.0))
