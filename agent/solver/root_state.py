"""Makes the root state of a run, measures it like any other state, and finds out facts about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from agent.budget import Usage
from agent.engine.session import Session
from agent.errors import UsageError
from agent.evaluate.goal_tests import lacking, require_files
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value import EvaluationInput
from agent.measure import SuiteReport
from agent.measure.baseline import joined
from agent.measure.ids import file_of
from agent.measure.measurer import find_baseline
from agent.measure.messages import INSTALL
from agent.measure.probing.spectrum import Spectrum
from agent.measure.probing.tracing import trace
from agent.run.action_log import task_of
from agent.run.events import Added, Extended, Spent, Started
from agent.run.tree.node import Node
from agent.task import dump_task, resolve_task
from sandboxes import Snapshot

SLOWER = 3.0
"""How many times longer a traced test run takes than a plain one."""


def make(session: Session, settings: Mapping[str, Any]) -> Snapshot:
    """Make the root state, or return the one that an earlier session made."""
    started = session.run.started
    if started is not None:
        session.task = task_of(session.run) if session.task.workspace.nested else session.task
        return started.base
    base = session.components.provider.create(replace(session.task.workspace, byte_code=True))
    session.task = resolve_task(session.task, session.components.provider, base)
    session.record(Started(dump_task(session.task), dict(settings), base))
    return base


def measure(session: Session, base: Snapshot) -> StagedScorer:
    """Measure the root state as a node. Its report is the baseline of everything that the scorer measures.

    Raises:
        agent.errors.UsageError, agent.errors.MeasureError: it cannot be measured as requested.
    """
    run, parts = session.run, session.components
    known = run.tree.root.report if len(run.tree) else _report_of(session, base)
    if known is None:
        require_files(session.task, parts.provider, base)
    report = known or find_baseline(
        parts.provider, session.task, base, parts.baseline_runs, untested=parts.lines is not None, timing=parts.timing
    )
    if not len(run.tree):  # its value is computed later, when its goals are known
        session.record(Spent(Usage(measurements=1), "baseline", None))
    found: list[SuiteReport] = []

    def learned(more: SuiteReport) -> None:
        """Record facts about the root, or keep them until the root is recorded."""
        session.record(Spent(Usage(measurements=1), "baseline", None))
        if len(run.tree):
            session.record(Extended(more))
        else:
            found.append(more)

    scorer = StagedScorer(
        parts.provider,
        session.task,
        base,
        report,
        parts.value,
        folder=run.journal.directory / "reports",
        strict=parts.gate == "strict",
        timing=parts.timing,
        left_s=lambda: parts.budget.left_s,
        learned=learned,
        spectrum=lambda: _spectrum(session, base) if _traceable(session) else Spectrum(),
        ask=partial(session.gateway.at, purpose="value"),
        memo=session.memo,
        tree=run.tree,
        foresee=partial(_foresee, session),
        known=partial(_report_of, session),
    )
    for node in run.tree:
        scorer.remember(node)
    scorer.prepare()
    if not len(run.tree):
        report = replace(reduce(joined, found, report), first=None)
        session.record(Added(Node(0, (), (), base, report, scorer.root, label="base"), parts.budget.elapsed_s))
    if parts.localise:
        _localise(session, scorer, base)
    return scorer


def _foresee(session: Session, case: EvaluationInput) -> float | None:
    """Return the value that a model expects of a state; None if no model is asked."""
    if (foresight := session.components.foresight) is None:
        return None
    return foresight.expected(replace(case, ask=session.gateway.at(case.path[-1].id, "prior")))


def _localise(session: Session, scorer: StagedScorer, base: Snapshot) -> None:
    adapter = session.run.tree.root.report.adapter
    if adapter != "pytest" and not session.components.others:
        raise UsageError(
            f"the policy `mutate` needs tests that pytest runs, and {scorer.task.test_command!r} is read as {adapter}: "
            "run them by pytest (--test, --test-framework), or name a model with --model (setting: policy)"
        )
    if not scorer.task.goal_tests:
        raise UsageError(
            "no test fails, and the policy `mutate` needs one to repair: add a failing test, or name a model with "
            "--model (setting: policy)"
        )
    if missing := lacking(scorer.task.goal_tests, session.run.tree.root.report):
        goal, package = next(iter(missing.items()))
        raise UsageError(f"the goal test {goal!r} fails only because the package {package} is missing: {INSTALL}")
    _spectrum(session, base)


def _traceable(session: Session) -> bool:
    """Whether the coverage of the tests is known, or the tests are quick enough to be traced."""
    report = session.run.tree.root.report
    cheap = report.complete and SLOWER * report.duration_s <= session.components.timing.whole_s
    return cheap or session.run.note(0, "spectrum") is not None


def _report_of(session: Session, state: Snapshot) -> SuiteReport | None:
    """Return what another run of the task measured for this state, or None."""
    node = session.prior_run.tree.with_state(state.digest) if session.prior_run else None
    return node.report if node else None


def _spectrum(session: Session, base: Snapshot) -> Spectrum:
    """Return the lines that each test executes in the root state."""

    def find() -> Any:
        prior = session.prior_run
        if prior is not None and prior.tree.root.state_hash == base.digest and prior.note(0, "spectrum"):
            return prior.note(0, "spectrum")
        session.record(Spent(Usage(measurements=1), "spectrum", 0))
        root = session.run.tree.root.report
        goals = () if root.complete else tuple(dict.fromkeys(map(file_of, session.task.goal_tests)))
        return trace(session.components.provider, session.task, base, root, goals).to_json()

    return Spectrum.from_json(session.memo("spectrum", find))
