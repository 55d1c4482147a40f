"""The end of a session: what is recorded, and the result that is returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from agent.budget import Stop, Usage
from agent.counting import counted
from agent.engine.session import Session
from agent.errors import RamifyError
from agent.evaluate.goal_tests import goals_of_run
from agent.files import write_atomically
from agent.measure import SuiteReport
from agent.redaction import redacted
from agent.run.events import Ended, Noted
from agent.run.grade import Grade, Status, declared, grade
from agent.run.run import Run
from agent.run.spending import costs_of_lines, seconds_of_lines
from agent.run.tree.node import Node
from agent.run.tree.tree import Tree
from agent.solver.refine.round_results import round_results
from agent.solver.result import Result
from agent.solver.warnings import manipulations, refusal, remarks
from sandboxes import Forked, SandboxError

_GRADES: Mapping[Status, Grade] = {
    "solved": Grade.SOLVED,
    "submitted": Grade.SUBMITTED,
    "improved": Grade.UNFINISHED,
    "no_patch": Grade.NONE,
}


def end(
    session: Session,
    status: Status,
    best: Node | None,
    stop: Stop,
    error: BaseException | None,
    verdict: Mapping[str, Any],
    *,
    verified: bool = True,
) -> Result:
    """Record the end of the session, with the state whose patch is the answer and what its verification found."""
    run = session.run
    ended = Ended(
        status=status,
        stop=stop.name,
        best=None if best is None else best.id,
        verified=best is not None and verified,
        patch_blob=verdict.get("patch"),
        elapsed_s=session.components.budget.elapsed_s,
        final=verdict.get("final", {}),
        reason=_reason(error),
    )
    _note_forks(session)
    session.record(ended)
    result = result_of(run, ended, error if isinstance(error, (RamifyError, SandboxError)) else None)
    write_atomically(run.journal.directory / "patch.diff", result.patch)
    return result


def result_of(run: Run, ended: Ended, error: Exception | None = None) -> Result:
    """Return the result of a run that ended this way."""
    best = None if ended.best is None else run.tree[ended.best]
    verdict = (best and run.verdict(best.id)) or {}
    broken = tuple(verdict.get("broken", ())) if best else ()
    return Result(
        status=_status(ended.status),
        patch=run.journal.get_blob(ended.patch_blob) if ended.patch_blob else b"",
        verified=ended.verified,
        stop=Stop[ended.stop],
        usage=run.usage,
        best_node=ended.best,
        run_dir=run.journal.directory,
        nodes=len(run.tree),
        seconds=ended.elapsed_s,
        baseline=_counts(run.tree),
        final=ended.final or _counts(run.tree),
        scope=str(verdict.get("scope", "")) if ended.verified or best is None else _unverified_scope(run, best.report),
        first_run_s=run.tree.root.report.duration_s if len(run.tree) else 0.0,
        grade=_grade(run, ended, best, verdict),
        broken=broken,
        declared=declared(best.submission, broken) if best else {},
        reproduced_by=best.evaluation.reproduced_by if best else (),
        rollouts=len(run.rollouts()),
        spent=dict(run.spent),
        lines=tuple(costs_of_lines(run.tree, run.rollouts())),
        lines_s=tuple(seconds_of_lines(run.node_seconds, run.rollouts())),
        rounds=run.round,
        round_results=tuple(round_results(run)) if run.rounds else (),
        notes=(
            *refusal(run, best),
            *(f"changed by the patch: {remark}" for remark in verdict.get("remarks", ())),
            *remarks(run),
        ),
        flagged=len(manipulations(run)),
        forked=_forked(run),
        error=error,
    )


def record_failed_start(session: Session, error: Exception) -> None:
    """Record that the session ended before anything was searched, and why."""
    elapsed_s = session.components.budget.elapsed_s
    session.record(Ended("no_patch", Stop.FAILED.name, elapsed_s=elapsed_s, reason=_reason(error)))


def _reason(error: BaseException | None) -> str:
    return "" if error is None else redacted(str(error))


def never_begun(run_dir: Path) -> Result:
    """Return the result of a run that was interrupted before it had a root state."""
    return Result(
        status="no_patch", patch=b"", verified=False, stop=Stop.INTERRUPTED, usage=Usage(), best_node=None,
        run_dir=run_dir, nodes=0, seconds=0.0, baseline={}, final={},
    )  # fmt: skip


def _note_forks(session: Session) -> None:
    """Note how often states were forked, in this session and earlier ones together."""
    if not len(session.run.tree):
        return
    now, before = session.components.provider.forked, _forked(session.run)
    total = replace(now, times=now.times + before.times, mismatches=now.mismatches + before.mismatches)
    session.record(Noted(0, "forked", asdict(total)))


def _status(name: str) -> Status:
    assert name in ("solved", "submitted", "improved", "no_patch")
    return name  # type: ignore[return-value]  # narrowed by the assertion


def _grade(run: Run, ended: Ended, best: Node | None, verdict: Mapping[str, Any]) -> Grade:
    """Return the grade of the answer. Runs of earlier versions have only a status."""
    graded = grade(best, verdict, goals_of_run(run)) if best else Grade.NONE
    return graded if graded.status == ended.status else _GRADES[_status(ended.status)]


def _unverified_scope(run: Run, report: SuiteReport) -> str:
    """Describe which tests were run for an answer that was not verified; empty if all tests were run."""
    if report.complete:
        return ""
    goals = goals_of_run(run)
    if goals and set(report.asked or report.outcomes) <= set(goals):
        passing = sum(map(report.passed, goals))
        return f"{passing} of {counted(len(goals), 'goal test')} pass; the other tests were not run"
    return f"{len(report.passes)} passed and {len(report.failures)} failed ({report.scope or 'others were not run'})"


def _counts(tree: Tree) -> dict[str, int]:
    report = tree.root.report if len(tree) else SuiteReport()
    return {"passed": len(report.passes), "failed": len(report.failures)}


def _forked(run: Run) -> Forked:
    noted = run.note(0, "forked") or {}
    return Forked(**{field.name: noted[field.name] for field in fields(Forked) if field.name in noted})
