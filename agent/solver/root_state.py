"""The base state of a run: made once, measured like any other, and what is found out about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from agent.budget import Usage
from agent.errors import UsageError
from agent.evaluate.scorer import GoalsFirst
from agent.measure import SuiteReport
from agent.measure.baseline import joined
from agent.measure.ids import file_of
from agent.measure.measurer import find_baseline
from agent.measure.probing.spectrum import Spectrum
from agent.measure.probing.tracing import trace
from agent.run.action_log import task_of
from agent.run.events import Added, Extended, Spent, Started
from agent.run.tree.tree import Node
from agent.solver.session import Sitting
from agent.task import dump_task, settled
from sandboxes import Snapshot

__all__ = ["make", "measure"]

SLOWER = 3.0
"""How many times as long a run of the tests takes that notes what they execute."""


def make(sitting: Sitting, settings: Mapping[str, Any]) -> Snapshot:
    """The base state: made now, or in an earlier sitting."""
    started = sitting.run.started
    if started is not None:
        sitting.task = task_of(sitting.run) if sitting.task.workspace.nested else sitting.task
        return started.base
    base = sitting.parts.provider.create(replace(sitting.task.workspace, byte_code=True))
    sitting.task = settled(sitting.task, sitting.parts.provider, base)
    sitting.record(Started(dump_task(sitting.task), dict(settings), base))
    return base


def measure(sitting: Sitting, base: Snapshot) -> GoalsFirst:
    """The root is a node like any other; its report is the baseline of all that the scorer measures.

    Raises:
        agent.errors.UsageError, agent.errors.MeasureError: it cannot be measured as asked.
    """
    run, parts = sitting.run, sitting.parts
    known = run.tree.root.report if len(run.tree) else _report_of(sitting, base)
    report = known or find_baseline(
        parts.provider,
        sitting.task,
        base,
        parts.baseline_runs,
        untested=parts.lines is not None,
        timing=parts.timing,
    )
    if not len(run.tree):  # its worth is known when its goals are
        sitting.record(Spent(Usage(measurements=1), "baseline", None))
    found: list[SuiteReport] = []

    def learned(more: SuiteReport) -> None:
        """What is found out before there is a root belongs to the root."""
        sitting.record(Spent(Usage(measurements=1), "baseline", None))
        if len(run.tree):
            sitting.record(Extended(more))
        else:
            found.append(more)

    scorer = GoalsFirst(
        parts.provider,
        sitting.task,
        base,
        report,
        parts.value,
        folder=run.journal.directory / "reports",
        strict=parts.gate == "strict",
        timing=parts.timing,
        left_s=lambda: parts.budget.left_s,
        learned=learned,
        spectrum=lambda: _spectrum(sitting, base) if _traceable(sitting) else Spectrum(),
        ask=partial(sitting.asker.at, purpose="value"),
        once=sitting.once,
        known=partial(_report_of, sitting),
    )
    for node in run.tree:
        scorer.remember(node)
    scorer.prepare()
    if not len(run.tree):
        report = replace(reduce(joined, found, report), first=None)
        sitting.record(Added(Node(0, (), (), base, report, scorer.root, label="base"), parts.budget.elapsed_s))
    if parts.localise:
        _localise(sitting, scorer, base)
    return scorer


def _localise(sitting: Sitting, scorer: GoalsFirst, base: Snapshot) -> None:
    adapter = sitting.run.tree.root.report.adapter
    if adapter != "pytest" and not sitting.parts.others:
        raise UsageError(
            f"the policy `mutate` edits Python by what its tests execute, and these tests are run by {adapter}: name a "
            "model with --policy, or run them by pytest (--test, --test-framework)"
        )
    if not scorer.task.goal_tests:
        raise UsageError(
            "no test fails, and the policy `mutate` needs one to repair: add a failing test, or name a model "
            "with --policy"
        )
    _spectrum(sitting, base)


def _traceable(sitting: Sitting) -> bool:
    """Whether what the tests execute is known, or a run that finds it out fits the time of the first run."""
    report = sitting.run.tree.root.report
    cheap = report.complete and SLOWER * report.duration_s <= sitting.parts.timing.whole_s
    return cheap or sitting.run.note(0, "spectrum") is not None


def _report_of(sitting: Sitting, state: Snapshot) -> SuiteReport | None:
    """What another run measured the state as."""
    node = sitting.known.tree.with_state(state.digest) if sitting.known else None
    return node.report if node else None


def _spectrum(sitting: Sitting, base: Snapshot) -> Spectrum:
    """What each test executes in the base state."""

    def find() -> Any:
        known = sitting.known
        if known is not None and known.tree.root.state_hash == base.digest and known.note(0, "spectrum"):
            return known.note(0, "spectrum")
        sitting.record(Spent(Usage(measurements=1), "spectrum", 0))
        root = sitting.run.tree.root.report
        goals = () if root.complete else tuple(dict.fromkeys(map(file_of, sitting.task.goal_tests)))
        return trace(sitting.parts.provider, sitting.task, base, root, goals).to_json()

    return Spectrum.from_json(sitting.once("spectrum", find))
