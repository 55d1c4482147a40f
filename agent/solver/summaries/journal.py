"""The summary of a rollout that is read off the journal, without a model."""

from __future__ import annotations

from collections.abc import Iterable

from agent.actions import Observation, View
from agent.measure.regressions import regressions
from agent.run.action_log import ActionRecord, commands
from agent.run.rollouts import Outcome, Rollout, Summary
from agent.run.run import Run
from agent.solver.summaries.faults import faults
from agent.solver.summaries.findings import hypothesis, insights, progress, risks
from agent.solver.summaries.record import Record, record
from agent.solver.summaries.wording import command
from sandboxes import Provider

__all__ = ["JOURNAL", "in_words", "summarise"]

JOURNAL = "journal"
"""The author of summaries that no model wrote."""


def summarise(run: Run, provider: Provider | None, rollout: Rollout) -> Summary:
    """What the journal says of a rollout. Without a provider the patch is the one that the journal has, if it has one.

    Raises:
        sandboxes.SandboxError: the best state is gone, and its patch was not kept.
    """
    return in_words(record(run, provider, rollout))


def in_words(found: Record) -> Summary:
    """The summary of what was found."""
    return Summary(
        leaf=found.rollout.leaf,
        author=JOURNAL,
        outcome=_outcome(found),
        hypothesis=hypothesis(found),
        files_read=_files_read(found.action_records),
        files_changed=_files_changed(found),
        commands=_distinct(map(command, commands(found.action_records))),
        tests_passed=_tests_passed(found),
        tests_failed=_tests_failed(found),
        progress=progress(found),
        failure_modes=faults(found),
        risks=risks(found),
        insights=insights(found),
        patch_blob=found.patch_blob,
    )


def _outcome(found: Record) -> Outcome:
    """By the tests of the best state; where its patch was verified, by that."""
    root, best = found.path[0], found.best
    if not best.report.valid:
        return "invalid"
    if best.evaluation.solved and not found.verdict:
        return "solved"
    if best.by_model and found.verdict.get("applied") and best.submitted and not found.goals:
        return "submitted"
    if found.verdict.get("solved") or found.verdict.get("improved"):
        return "solved" if found.verdict["solved"] else "improved"
    if best.evaluation.by_tests > root.evaluation.by_tests and not found.verdict:
        return "improved"
    return "worse" if regressions(root.report, best.report) and not _tests_passed(found) else "unchanged"


def _files_read(action_records: Iterable[ActionRecord]) -> tuple[str, ...]:
    """Those that were viewed. What a command read is not recorded."""
    return _distinct(
        action_record.path
        for action_record in action_records
        if isinstance(action_record.action, View) and _is_file(action_record.action, action_record.seen)
    )


def _is_file(view: View, seen: Observation) -> bool:
    return seen.ok and not seen.text.startswith(f"{view.path} is a directory")


def _files_changed(found: Record) -> tuple[str, ...]:
    """Those that were edited, and those that commands have changed as the patch shows."""
    edited = (action_record.path for action_record in found.action_records if action_record.changes_a_file)
    return _distinct((*edited, *(file.path for file in found.patch)))


def _tests_passed(found: Record) -> tuple[str, ...]:
    baseline, report = found.path[0].report, found.best.report
    failing = (*(test for test in baseline.failures if test not in baseline.flaky), *found.goals)
    return _distinct(test for test in failing if report.passed(test))


def _tests_failed(found: Record) -> tuple[str, ...]:
    baseline, report = found.path[0].report, found.best.report
    return _distinct((*(test for test in found.goals if not report.passed(test)), *regressions(baseline, report)))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
