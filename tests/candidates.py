"""Candidates for tests: patches with facts, and judges, without a sandbox or a model behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.run.ballots import Ballot
from agent.run.rollouts import Candidate, Outcome, Rollout, Summary
from agent.run.tree.evaluation import Evaluation
from agent.task import Task
from sandboxes import Workspace

TASK = Task("t", "It is wrong.", Workspace(), "pytest")


def candidate(
    node: int,
    patch: bytes | None = None,
    *,
    solved: bool = True,
    progress: float = 1.0,
    outcome: Outcome = "solved",
    leaf: int | None = None,
    value: float | None = None,
    **parts: float,
) -> Candidate:
    """A candidate whose patch is its own unless one is given."""
    leaf = node if leaf is None else leaf
    path = (0, node) if leaf == node else (0, node, leaf)
    worth = (1.0 if solved else progress) if value is None else value
    return Candidate(
        Rollout(path, node, 1),
        b"+ %d\n" % node if patch is None else patch,
        Evaluation(worth, solved, {"progress": progress, **parts}),
        Summary(leaf, "journal", outcome, hypothesis=f"Idea {node}."),
    )


@dataclass
class FixedJudge:
    """Prefers what `prefer` says, of the nodes that it is shown; remembers what it was shown."""

    prefer: Callable[[tuple[int, ...], int], int | None] = lambda nodes, vote: max(nodes)
    name: str = "fixed"
    asked: list[tuple[tuple[int, ...], int]] = field(default_factory=list)

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int) -> Ballot:
        nodes = tuple(each.node for each in group)
        self.asked.append((nodes, vote))
        return Ballot(nodes, self.prefer(nodes, vote), "because")
