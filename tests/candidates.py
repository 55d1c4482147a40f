"""Candidates for tests: patches with facts, and judges, without a sandbox or a model behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.run.ballots import Ballot
from agent.run.cross_tests import UNTESTED, Matrix
from agent.run.grade import Grade
from agent.run.rollouts import Candidate, Rollout, RolloutOutcome, Summary
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
    outcome: RolloutOutcome = "solved",
    grade: Grade | None = None,
    source: bytes | None = None,
    leaf: int | None = None,
    value: float | None = None,
    **parts: float,
) -> Candidate:
    """A candidate whose patch is its own unless one is given, and changes nothing but sources."""
    leaf = node if leaf is None else leaf
    path = (0, node) if leaf == node else (0, node, leaf)
    worth = (1.0 if solved else progress) if value is None else value
    patch = b"+ %d\n" % node if patch is None else patch
    return Candidate(
        Rollout(path, node, 1),
        patch,
        Evaluation(worth, solved, {"progress": progress, **parts}),
        Summary(leaf, "journal", outcome, hypothesis=f"Idea {node}."),
        grade if grade is not None else Grade.SOLVED if solved else Grade.UNFINISHED,
        patch if source is None else source,
        patch if source is None else source,
    )


@dataclass
class FixedJudge:
    """Prefers what `prefer` says, of the nodes that it is shown; remembers what it was shown."""

    prefer: Callable[[tuple[int, ...], int], Any] = lambda nodes, vote: max(nodes)
    name: str = "fixed"
    asked: list[tuple[tuple[int, ...], int]] = field(default_factory=list)
    shown: list[Matrix] = field(default_factory=list)

    def requests(self, size: int) -> int:
        return 1

    def vote(self, task: Task, group: tuple[Candidate, ...], vote: int, matrix: Matrix = UNTESTED) -> Ballot:
        nodes = tuple(each.node for each in group)
        self.asked.append((nodes, vote))
        self.shown.append(matrix)
        winner = self.prefer(nodes, vote)
        tie = winner == "tie"
        return Ballot(nodes, None if tie else winner, "because", tie=tie)
