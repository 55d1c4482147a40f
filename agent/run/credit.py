"""Credit: the value of a node, computed from the outcomes of the leaves below it.

Each leaf has an outcome: 1 if it succeeded (`succeeded`), else 0; or its value by its tests. A leaf counts once, below
the parent that it was made from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent.run.action_log import task_of
from agent.run.grade import Grade, grade
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree

OutcomeKind = Literal["solved", "value"]
"""What is averaged: 0 or 1 (succeeded), or the leaf's value in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Credit:
    """The outcomes of the leaves below a node, or of the node itself if it is a leaf."""

    value: float
    """Their mean outcome, in [0, 1]."""
    leaves: int
    solved: int

    def __add__(self, other: Credit) -> Credit:
        leaves = self.leaves + other.leaves
        value = (self.value * self.leaves + other.value * other.leaves) / leaves
        return Credit(value, leaves, self.solved + other.solved)


def succeeded(run: Run, node: NodeId) -> bool:
    """Whether a state is a success as far as the run knows: it is solved and no verification refuted it, or it was
    submitted (`submitted`)."""
    return run.solved(node) or submitted(run, node)


def submitted(run: Run, node: NodeId) -> bool:
    """Whether a state of a run without known goals was submitted, and its verification found no test that it broke
    without a declared reason. Weaker than solved: no test confirms that it does what the issue asks for."""
    if not run.tree[node].submitted or goals_known(run):
        return False
    return grade(run.tree[node], run.verdict(node) or {}, ()) in (Grade.DECLARED, Grade.SUBMITTED)


def success_rate(run: Run) -> float | None:
    """The share of a run's rollouts that succeeded; None if there are no rollouts."""
    successes = [succeeded(run, rollout.leaf) for rollout in (run.rollouts() if len(run.tree) else ())]
    return sum(successes) / len(successes) if successes else None


def goals_known(run: Run) -> bool:
    """Whether the run can tell if a state solves the task: its task says which tests have to pass, or a state is
    solved."""
    task = task_of(run)
    return bool(task.goal_tests) or task.goal_failing or bool(run.tree.solved)


def outcome(run: Run, by: OutcomeKind = "solved") -> Callable[[Node], float]:
    """Return a function for the outcome of a leaf, in [0, 1]; 1 only if the leaf succeeded."""

    def found(leaf: Node) -> float:
        right = succeeded(run, leaf.id)
        return float(right) if right or by == "solved" or leaf.evaluation.solved else leaf.value

    return found


def mean_values(run: Run) -> dict[NodeId, float]:
    """Compute the mean value of the states of each subtree; a state that was `submitted` counts as 1."""
    sums: dict[NodeId, float] = {}
    for node in reversed(list(run.tree)):
        own = 1.0 if submitted(run, node.id) else node.value
        sums[node.id] = own + sum(sums[child.id] for child in run.tree.children(node.id))
    return {node: total / run.tree.visits(node) for node, total in sums.items()}


def node_credit(tree: Tree, of: Callable[[Node], float]) -> dict[NodeId, Credit]:
    """Compute the credit of every node; `of` returns the outcome of a leaf. A node's credit is the mean of its
    children's credits, weighted by their numbers of leaves (the Monte Carlo values of TreePS-RAG, arXiv 2601.06922)."""
    credit: dict[NodeId, Credit] = {}
    for node in reversed(list(tree)):
        below = [credit[child.id] for child in tree.children(node.id)]
        if not below:
            value = of(node)
            below = [Credit(value, 1, int(value == 1.0))]
        credit[node.id] = sum(below[1:], below[0])
    return credit
