"""Admission: which runs may be remembered, and on what evidence.

Invariant: only verified outcomes are remembered. A patch counts if it passed verification by tests and guard; a failure
counts, as a failure, if the search ended by itself. EchoTrail-GUI admits by a critic; here tests decide.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

from agent.budget import Stop
from agent.counting import counted
from agent.files import to_json
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import RunOutcome, Source
from agent.run.action_log import task_of
from agent.run.run import Run

_CUT_SHORT = (Stop.INTERRUPTED, Stop.FAILED)
"""A search that stopped for one of these reasons without a patch proves nothing."""


class Unverified(Exception):
    """A run may not be remembered. The message says why."""


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def _run_id(run: Run) -> str:
    """The name of the run's directory and a digest of its first event: the same wherever the directory is moved to."""
    digest = hashlib.sha256(to_json(run.started)).hexdigest()[:8]
    return f"{run.journal.directory.resolve().name}-{digest}"


def issue_of(run: Run) -> Issue:
    """The issue that a run is on; if its task names no goal tests, they are the failing tests of the base state.

    Raises:
        Unverified: the run ended before its base state was measured.
    """
    if run.started is None or not len(run.tree):
        raise Unverified("it ended before its base state was measured")
    task = task_of(run)
    return Issue.of(replace(task, goal_tests=task.goal_tests or run.tree.root.report.failures))


def source_of(run: Run, at: datetime) -> Source:
    """The run as a source of memory, added at this time.

    Raises:
        Unverified: the run has not ended, or its outcome was not verified.
    """
    issue = issue_of(run)
    outcome, evidence = _evidence(run)
    directory = str(run.journal.directory.resolve())
    return Source(_run_id(run), directory, issue, outcome, evidence, at.isoformat(timespec="seconds"))


def _evidence(run: Run) -> tuple[RunOutcome, str]:
    ended = run.ended
    if ended is None:
        raise Unverified("it has not ended: continue it with ramify resume")
    if ended.status == "no_patch":
        return _failure(run)
    verdict = (run.verdict(ended.best) if ended.best is not None else None) or {}
    if ended.status == "improved" and ended.verified and not verdict.get("improved"):
        return _failure(run)
    stands = verdict.get("improved" if ended.status == "submitted" else ended.status)
    if not ended.verified or not stands:
        raise Unverified(f"its patch ({ended.status}) was not verified")
    tests = f"{ended.final.get('passed', 0)} tests pass and {ended.final.get('failed', 0)} fail"
    outcome: RunOutcome = "solved" if ended.status == "solved" else "improved"
    return outcome, f"state {ended.best}, verified: {tests} with its patch"


def _failure(run: Run) -> tuple[RunOutcome, str]:
    assert run.ended is not None
    stop = Stop[run.ended.stop]
    if stop in _CUT_SHORT:
        raise Unverified(f"it was cut short ({stop.value}), which says nothing about the issue")
    if not run.tree.ended_expansions:
        raise Unverified("nothing was tried in it")
    refuted = sum(not verdict["solved"] for verdict in run.verdicts())
    return "failed", f"{counted(len(run.tree) - 1, 'state')}, {refuted} of them refuted by a verification; {stop.value}"
