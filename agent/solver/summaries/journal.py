"""The summary of a rollout that is made from the journal, without a model."""

from __future__ import annotations

from collections.abc import Iterable

from agent.actions import View
from agent.measure.regressions import regressions
from agent.run.action_log import ActionRecord, commands
from agent.run.rollouts import Rollout, RolloutOutcome, Summary
from agent.run.run import Run
from agent.solver.summaries.faults import faults
from agent.solver.summaries.findings import hypothesis, insights, progress, risks
from agent.solver.summaries.record import Record, record
from agent.solver.summaries.wording import command, distinct
from sandboxes import Provider

JOURNAL = "journal"
"""The author of summaries made without a model."""


def summarise(run: Run, provider: Provider | None, rollout: Rollout) -> Summary:
    """Summarise a rollout from the journal. Without a provider, the summary has the patch only if the journal has it.

    Raises:
        sandboxes.SandboxError: the best state is gone, and its patch was not kept.
    """
    return summary_of(record(run, provider, rollout))


def summary_of(record: Record) -> Summary:
    """The summary of a record."""
    return Summary(
        leaf=record.rollout.leaf,
        author=JOURNAL,
        outcome=_outcome(record),
        hypothesis=hypothesis(record),
        files_read=_files_read(record.action_records),
        files_changed=_files_changed(record),
        commands=distinct(map(command, commands(record.action_records))),
        tests_passed=_tests_passed(record),
        tests_failed=_tests_failed(record),
        progress=progress(record),
        failure_modes=faults(record),
        risks=risks(record),
        insights=insights(record),
        patch_blob=record.patch_blob,
    )


def _outcome(record: Record) -> RolloutOutcome:
    """Return the outcome by the verification of the best state, or by its tests if its patch was not verified."""
    root, best, verdict = record.path[0], record.best, record.verdict
    if not best.report.valid:
        return "invalid"
    if best.evaluation.solved and not verdict:
        return "solved"
    if best.by_model and verdict.get("applied") and best.submitted and not record.goals:
        return "submitted"
    if verdict.get("solved") or verdict.get("improved"):
        return "solved" if verdict["solved"] else "improved"
    if best.evaluation.by_tests > root.evaluation.by_tests and not verdict:
        return "improved"
    return "worse" if regressions(root.report, best.report) and not _tests_passed(record) else "unchanged"


def _files_read(action_records: Iterable[ActionRecord]) -> tuple[str, ...]:
    """Return the files that were viewed. Files that a command read are not recorded."""
    views = (each for each in action_records if isinstance(each.action, View) and each.seen.ok)
    return distinct(each.path for each in views if not each.seen.text.startswith(f"{each.path} is a directory"))


def _files_changed(record: Record) -> tuple[str, ...]:
    """Return the files that were edited, and those that commands changed according to the patch."""
    edited = (each.path for each in record.action_records if each.changes_a_file)
    return distinct((*edited, *(file.path for file in record.patch)))


def _tests_passed(record: Record) -> tuple[str, ...]:
    baseline, report = record.path[0].report, record.best.report
    failing = (*(test for test in baseline.failures if test not in baseline.flaky), *record.goals)
    passing = (test for test in failing if report.passed(test))
    return distinct((*passing, *record.best.evaluation.reproduced_by))


def _tests_failed(record: Record) -> tuple[str, ...]:
    baseline, report = record.path[0].report, record.best.report
    return distinct((*(test for test in record.goals if not report.passed(test)), *regressions(baseline, report)))
