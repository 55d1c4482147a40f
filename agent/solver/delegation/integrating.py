"""Integration: the root state with the merged parts, one node each, and the tests that decide about a merge."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from agent.budget import Usage
from agent.engine.merge import NotFused, join
from agent.engine.session import Session
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.verification import Assessment
from agent.measure.regressions import must_pass
from agent.run.events import Added, Spent
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.node import Node, Step
from agent.solver.delegation.attempts import MERGED, PartAttempt, merged
from agent.solver.delegation.part_search import PartResult
from agent.solver.delegation.plan import SubTask
from sandboxes import Snapshot

log = logging.getLogger(__name__)

PARTIAL = "partial"
"""The kind of a leaf into which an unfinished part was merged, in case nothing better is found."""


class Integration:
    """The integrated state of a run. Used by one thread."""

    def __init__(self, session: Session, scorer: StagedScorer) -> None:
        self._session, self._scorer = session, scorer
        self._run, self._provider = session.run, session.components.provider

    @property
    def tip(self) -> Node:
        """The newest node of the chain; the root before anything is merged."""
        return next((node for node in reversed(list(self._run.tree)) if node.kind == MERGED), self._run.tree.root)

    def merged(self, plan: Iterable[SubTask]) -> list[SubTask]:
        """Return the parts in the integrated state, and those whose tests pass there anyway and which need no
        search."""
        done, report = merged(self._run), self.tip.report
        return [
            part for part in plan if part.id in done or (part.goal_tests and all(map(report.passed, part.goal_tests)))
        ]

    def merge(self, plan: Iterable[SubTask], search: PartAttempt, work: PartResult) -> None:
        """Merge a finished part if its tests and all tests that passed before pass in the integrated state.

        Raises:
            agent.engine.merge.NotFused: it conflicts with a part that was merged in the meantime, or tests do not pass;
                the message names them.
        """
        goals = [test for part in (search.part, *self.merged(plan)) for test in part.goal_tests]
        with self._joined(search, work) as (snapshots, state, assessment):
            report = assessment.report
            if not report.valid or not report.conclusive:
                raise NotFused(f"the tests gave no valid result with part {search.part.id} merged: {report.problem}")
            required = dict.fromkeys((*goals, *must_pass(self._run.tree.root.report)))
            if failing := [test for test in required if not report.passed(test)]:
                raise NotFused(f"with it merged, these tests do not pass: {', '.join(failing[:10])}")
            if search.part.goal_tests and assessment.evaluation.value <= self.tip.value:
                raise NotFused(f"part {search.part.id} is not trusted: {assessment.evaluation.notes}")
            snapshots.keep(state)
            there = {search.part.id, *(part.id for part in self.merged(plan))}
            self._add(search, state, assessment, MERGED, self._turns(work, whole=there.issuperset(p.id for p in plan)))

    def keep(self, search: PartAttempt, work: PartResult) -> None:
        """Keep the best state of an unfinished part as a leaf, if it is an improvement and breaks nothing."""
        try:
            with self._joined(search, work) as (snapshots, state, assessment):
                if assessment.improved and assessment.evaluation.value > self._best_value():
                    snapshots.keep(state)
                    self._add(search, state, assessment, PARTIAL, self._turns(work, whole=False))
        except NotFused as why:
            log.info("part %s: %s", search.part.id, why)

    def _best_value(self) -> float:
        """The highest value of the integrated state and the leaves kept beside it."""
        return max([self.tip.value, *(node.value for node in self._run.tree if node.kind == PARTIAL)])

    @contextmanager
    def _joined(
        self, search: PartAttempt, work: PartResult
    ) -> Iterator[tuple[TemporarySnapshots, Snapshot, Assessment]]:
        """Yield the integrated state with the part's changes, and the result of its whole test suite. The state is
        discarded at the end of the block unless it is kept.

        Raises:
            agent.engine.merge.NotFused: the changes cannot be joined.
        """
        tip, name = self.tip, f"part {search.part.id}"
        if work.state is None:
            raise NotFused(f"nothing came of {name}")
        with TemporarySnapshots(self._provider) as snapshots:
            names = f"the integrated state (with {self._others(search)})", name
            state = snapshots.add(join(self._provider, work.base, tip.snapshot, work.state, names))
            assessment = self._scorer.assess(state, self._run.tree.path(tip.id), tip.report)
            self._session.record(Spent(Usage(measurements=assessment.runs), "merge", tip.id))
            yield snapshots, state, assessment

    @staticmethod
    def _turns(work: PartResult, *, whole: bool) -> tuple[Step, ...]:
        """Return the turn that led to an integrated state. A model's `submit` of a part counts as a `submit` of the
        issue only for the last part."""
        if work.turn is None:
            return ()
        return (work.turn if whole else replace(work.turn, actions=(), observations=()),)

    def _add(
        self, search: PartAttempt, state: Snapshot, assessment: Assessment, kind: str, turns: tuple[Step, ...]
    ) -> None:
        tip, evaluation, name = self.tip, assessment.evaluation, search.part.id
        label = f"merge {name}" if kind == MERGED else f"{name}, not done"
        node = Node(len(self._run.tree), (tip.id,), turns, state, assessment.report, evaluation, policy_id=name,
                    terminal=evaluation.solved, label=label, kind=kind)  # fmt: skip
        self._session.record(Added(node, self._session.components.budget.elapsed_s))

    def _others(self, search: PartAttempt) -> str:
        """Name the parts that were merged since a search began."""
        later = [node.policy_id for node in self._run.tree if node.kind == MERGED and node.id > search.base]
        return ", ".join(later) or "nothing new"
