"""Integrating: the base state with the parts that were merged, a node each, and the tests that decide on them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from agent.budget import Usage
from agent.engine.merge import NotFused, join
from agent.engine.session import Session
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.verification import Judgement
from agent.measure.regressions import must_pass
from agent.run.events import Added, Spent
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.tree import Node
from agent.solver.delegation.attempts import MERGED, Attempt, merged
from agent.solver.delegation.plan import SubTask
from agent.solver.delegation.working import Work
from sandboxes import Snapshot

__all__ = ["Integration"]

log = logging.getLogger(__name__)

PARTIAL = "partial"
"""The kind of a node that has a part which is not done: a leaf, in case that nothing better comes."""


class Integration:
    """The integrated state of a run. Used by one thread."""

    def __init__(self, session: Session, scorer: StagedScorer) -> None:
        self._session, self._scorer = session, scorer
        self._run, self._provider = session.run, session.components.provider

    @property
    def tip(self) -> Node:
        """The newest of the chain; the base state before anything was merged."""
        return next((node for node in reversed(list(self._run.tree)) if node.kind == MERGED), self._run.tree.root)

    def merged(self, plan: Iterable[SubTask]) -> list[SubTask]:
        """The parts that are in it. One whose tests pass there without it needs no search."""
        done, report = merged(self._run), self.tip.report
        return [
            part for part in plan if part.id in done or (part.goal_tests and all(map(report.passed, part.goal_tests)))
        ]

    def merge(self, plan: Iterable[SubTask], each: Attempt, work: Work) -> None:
        """Put a part that is done into it: its tests pass there, and all that passed before.

        Raises:
            agent.engine.merge.NotFused: it conflicts with what was merged meanwhile, or tests do not pass; they are
            named.
        """
        goals = [test for part in (each.part, *self.merged(plan)) for test in part.goal_tests]
        with self._joined(each, work) as (made, state, judgement):
            report = judgement.report
            if not report.valid or not report.conclusive:
                raise NotFused(f"the tests gave no valid result with part {each.part.id} merged: {report.problem}")
            wanted = dict.fromkeys((*goals, *must_pass(self._run.tree.root.report)))
            if failing := [test for test in wanted if not report.passed(test)]:
                raise NotFused(f"with it merged, these tests do not pass: {', '.join(failing[:10])}")
            if each.part.goal_tests and judgement.evaluation.value <= self.tip.value:
                raise NotFused(f"part {each.part.id} is not trusted: {judgement.evaluation.notes}")
            made.keep(state)
            self._add(each, state, judgement, MERGED)

    def keep(self, each: Attempt, work: Work) -> None:
        """Keep the best of a part that is not done beside it, where that is better than nothing and breaks nothing."""
        try:
            with self._joined(each, work) as (made, state, judgement):
                if judgement.improved and judgement.evaluation.value > self._best_value():
                    made.keep(state)
                    self._add(each, state, judgement, PARTIAL)
        except NotFused as why:
            log.info("part %s: %s", each.part.id, why)

    def _best_value(self) -> float:
        """Of the integrated state and what is kept beside it."""
        return max([self.tip.value, *(node.value for node in self._run.tree if node.kind == PARTIAL)])

    @contextmanager
    def _joined(self, each: Attempt, work: Work) -> Iterator[tuple[TemporarySnapshots, Snapshot, Judgement]]:
        """The integrated state with the part's changes, and what its whole suite says. It is discarded at the end of
        the block unless it is kept.

        Raises:
            agent.engine.merge.NotFused: there is no such state.
        """
        tip, name = self.tip, f"part {each.part.id}"
        if work.state is None:
            raise NotFused(f"nothing came of {name}")
        with TemporarySnapshots(self._provider) as made:
            names = f"the integrated state (with {self._others(each)})", name
            state = made.add(join(self._provider, work.base, tip.snapshot, work.state, names))
            judgement = self._scorer.judge(state, self._run.tree.path(tip.id), tip.report)
            self._session.record(Spent(Usage(measurements=judgement.runs), "merge", tip.id))
            yield made, state, judgement

    def _add(self, each: Attempt, state: Snapshot, judgement: Judgement, kind: str) -> None:
        tip, evaluation = self.tip, judgement.evaluation
        label = f"merge {each.part.id}" if kind == MERGED else f"{each.part.id}, not done"
        node = Node(len(self._run.tree), (tip.id,), (), state, judgement.report, evaluation, policy_id=each.part.id,
                    terminal=evaluation.solved, label=label, kind=kind)  # fmt: skip
        self._session.record(Added(node, self._session.components.budget.elapsed_s))

    def _others(self, each: Attempt) -> str:
        """The parts that were merged since a search began."""
        later = [n.policy_id for n in self._run.tree if n.kind == MERGED and n.id > each.base]
        return ", ".join(later) or "nothing new"
