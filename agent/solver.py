"""solve(): from a task to a verified patch.

Law: there is always an answer. At any limit, error or signal the best patch so far is verified from the base state and
returned; the run on disk can be resumed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from agent.asking import Asker
from agent.budget import Stop, Usage
from agent.engine import Grower
from agent.errors import RamifyError, UsageError
from agent.events import Added, Ended, Event, Noted, Spent, Started
from agent.journal import write_atomically
from agent.measure import SuiteReport
from agent.measure.measurer import find_baseline
from agent.measure.spectrum import Spectrum
from agent.measure.tracing import trace
from agent.parts import Parts
from agent.remarks import remarks
from agent.result import Result, Status
from agent.run import Run
from agent.scoring import GoalsFirst
from agent.task import Task, dump_task
from agent.tree import Node, Tree
from agent.verify import verify
from sandboxes import Forked, SandboxError, Snapshot, StoreFull

__all__ = ["Result", "solve"]

log = logging.getLogger(__name__)

CANDIDATES = 5
"""Unsolved states that are verified, best first, when a search ends without a solved one."""


def solve(
    task: Task,
    parts: Parts,
    run: Run,
    *,
    settings: Mapping[str, Any] | None = None,
    cancel: threading.Event | None = None,
    on_event: Callable[[Event], None] | None = None,
    known: Run | None = None,
) -> Result:
    """Begin a run or go on with it, until it is solved, exhausted, out of budget or cancelled. What `known`, another
    run of the task, measured of a state is not measured again; the patch in the end is verified in any case.

    Raises:
        agent.errors.UsageError, agent.errors.MeasureError: the base state cannot be measured as asked.
        sandboxes.SandboxError: the base state cannot be made.
    """
    solver = _Solver(task, parts, run, cancel or threading.Event(), on_event or (lambda event: None), known)
    return solver.solve(settings or {})


class _Solver:
    """One sitting of one run."""

    def __init__(
        self,
        task: Task,
        parts: Parts,
        run: Run,
        cancel: threading.Event,
        on_event: Callable[[Event], None],
        known: Run | None,
    ) -> None:
        self._task, self._parts, self._run, self._cancel, self._on_event = task, parts, run, cancel, on_event
        self._known = known
        self._finding = threading.RLock()
        self._asker = Asker(run, parts.budget, on_event)

    def solve(self, settings: Mapping[str, Any]) -> Result:
        run = self._run
        if run.ended is not None and run.ended.status == "solved":
            return self._result(run.ended)
        self._parts.budget.start(spent=run.usage, nodes=len(run.tree), elapsed_s=run.elapsed_s)
        base = self._begin(settings)
        scorer = self._measure_base(base)
        grower = Grower(scorer.task, self._parts, run, scorer, self._asker, self._once, self._on_event)
        try:
            stop = self._search(grower, scorer)
        except StoreFull as full:
            return self._finish(Stop.FAILED, scorer, full)
        except BaseException as error:
            self._finish(Stop.FAILED, scorer, error)
            raise
        nothing_came = stop is Stop.EXHAUSTED and len(run.tree) == 1
        return self._finish(stop, scorer, grower.error if stop is Stop.FAILED or nothing_came else None)

    def _begin(self, settings: Mapping[str, Any]) -> Snapshot:
        """The base state: made now, or in an earlier sitting."""
        if self._run.started is not None:
            return self._run.started.base
        base = self._parts.provider.create(replace(self._task.workspace, byte_code=True))
        self._record(Started(dump_task(self._task), dict(settings), base))
        return base

    def _measure_base(self, base: Snapshot) -> GoalsFirst:
        """The root is a node like any other; its report is the baseline."""
        run, provider, value = self._run, self._parts.provider, self._parts.value
        runs = self._parts.baseline_runs
        known = run.tree.root.report if len(run.tree) else self._report_of(base)
        report = known or find_baseline(provider, self._task, base, runs)
        scorer = GoalsFirst(
            provider,
            self._task,
            base,
            report,
            value,
            folder=run.journal.directory / "reports",
            spectrum=lambda: self._spectrum(base),
            ask=partial(self._asker.at, purpose="value"),
            once=self._once,
            known=self._report_of,
        )
        for node in run.tree:
            scorer.remember(node)
        if not len(run.tree):
            self._record(Spent(Usage(measurements=1), "baseline", None))
            self._record(Added(Node(0, (), (), base, report, scorer.root, label="base"), self._parts.budget.elapsed_s))
        if self._parts.localise:
            if not scorer.task.goal_tests:
                raise UsageError(
                    "no test fails, and the policy `mutate` needs one to repair: add a failing test, or name a model "
                    "with --policy"
                )
            self._spectrum(base)
        return scorer

    def _report_of(self, state: Snapshot) -> SuiteReport | None:
        """What another run measured the state as."""
        node = self._known.tree.with_state(state.digest) if self._known else None
        return node.report if node else None

    def _spectrum(self, base: Snapshot) -> Spectrum:
        """What each test executes in the base state."""

        def find() -> Any:
            if self._known is not None and self._report_of(base) is not None and self._known.note(0, "spectrum"):
                return self._known.note(0, "spectrum")
            self._record(Spent(Usage(measurements=1), "spectrum", 0))
            return trace(self._parts.provider, self._task, base, self._run.tree.root.report).to_json()

        return Spectrum.from_json(self._once("spectrum", find))

    def _once(self, key: str, find: Callable[[], Any]) -> Any:
        """A fact about the task: found once, then read from the journal. Others that want one wait meanwhile."""
        with self._finding:
            if self._run.note(0, key) is None:
                self._record(Noted(0, key, find()))
            return self._run.note(0, key)

    def _search(self, grower: Grower, scorer: GoalsFirst) -> Stop:
        """Grow until a solved state stands its verification, or growth ends for another reason."""
        while (stop := grower.grow(self._cancel, lambda: self._solved() is not None)) is Stop.SOLVED:
            node = self._solved()
            assert node is not None
            if self._verdict(node, scorer)["solved"]:
                break
        return stop

    def _solved(self) -> Node | None:
        """The oldest solved state that no verification has refuted."""
        for node_id in self._run.tree.solved:
            verdict = self._run.note(node_id, "verdict")
            if verdict is None or verdict["solved"]:
                return self._run.tree[node_id]
        return None

    def _verdict(self, node: Node, scorer: GoalsFirst) -> Mapping[str, Any]:
        """The verification of a state (`Verdict.to_note`): made once, then read from the journal."""
        if self._run.note(node.id, "verdict") is None:
            self._parts.provider.require_room(to_finish=True)
            verdict = verify(self._parts.provider, self._run.tree.root, node, scorer)
            self._record(Spent(Usage(measurements=verdict.measurements), "verification", node.id))
            self._record(Noted(node.id, "verdict", verdict.to_note(self._run.journal.put_blob(verdict.patch))))
        note: Mapping[str, Any] = self._run.note(node.id, "verdict") or {}
        return note

    def _finish(self, stop: Stop, scorer: GoalsFirst, error: BaseException | None) -> Result:
        """Choose the answer, the best state whose patch stands its verification, and record how the sitting ended."""
        for candidate in self._candidates():
            try:
                verdict = self._verdict(candidate, scorer)
            except StoreFull as full:
                return self._end_unverified(candidate, error or full)
            if verdict["solved"] or verdict["improved"]:
                return self._end("solved" if verdict["solved"] else "improved", candidate, stop, error)
        return self._end("no_patch", None, stop, error)

    def _end_unverified(self, best: Node, error: BaseException) -> Result:
        """There is no room to verify the best state: its patch is given as what it is. A later sitting verifies it."""
        patch = self._parts.provider.diff(self._run.tree.root.snapshot, best.snapshot)
        final = {"passed": len(best.report.passes), "failed": len(best.report.failures)}
        note = {"patch": self._run.journal.put_blob(patch), "final": final}
        return self._end("improved", best, Stop.FAILED, error, unverified=note)

    def _candidates(self) -> Iterator[Node]:
        """States worth a patch: solved, better than the base, or submitted or accepted by a critic where no test fails;
        best first. What was seen to break something is none."""
        tree = self._run.tree
        if not len(tree):
            return
        better = [n for n in tree if n.is_answer(tree.root) and not n.evaluation.parts.get("harm", 0.0)]
        better.sort(key=lambda n: (not n.evaluation.solved, not n.evaluation.accepted, -n.value, n.id))
        yield from better[:CANDIDATES]

    def _end(
        self,
        status: Status,
        best: Node | None,
        stop: Stop,
        error: BaseException | None,
        unverified: Mapping[str, Any] | None = None,
    ) -> Result:
        verdict = unverified or (None if best is None else self._run.note(best.id, "verdict")) or {}
        ended = Ended(
            status=status,
            stop=stop.name,
            best=None if best is None else best.id,
            verified=best is not None and unverified is None,
            patch_blob=verdict.get("patch"),
            elapsed_s=self._parts.budget.elapsed_s,
            final=verdict.get("final", {}),
        )
        self._note_forks()
        self._record(ended)
        result = self._result(ended, error if isinstance(error, (RamifyError, SandboxError)) else None)
        write_atomically(self._run.journal.directory / "patch.diff", result.patch)
        return result

    def _note_forks(self) -> None:
        """Those of this sitting, with those of the ones before."""
        if not len(self._run.tree):
            return
        now, before = self._parts.provider.forked, _forked(self._run)
        total = replace(now, times=now.times + before.times, mismatches=now.mismatches + before.mismatches)
        self._record(Noted(0, "forked", asdict(total)))

    def _result(self, ended: Ended, error: Exception | None = None) -> Result:
        run = self._run
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
            notes=remarks(run),
            forked=_forked(run),
            error=error,
        )

    def _record(self, event: Event) -> None:
        self._run.record(event)
        if isinstance(event, Added):
            self._parts.budget.count_node()
        elif isinstance(event, Spent):
            self._parts.budget.settle(event.usage)
        self._on_event(event)


def _status(name: str) -> Status:
    assert name in ("solved", "improved", "no_patch")
    return name  # type: ignore[return-value]  # narrowed by the assertion


def _counts(tree: Tree) -> dict[str, int]:
    report = tree.root.report if len(tree) else SuiteReport()
    return {"passed": len(report.passes), "failed": len(report.failures)}


def _forked(run: Run) -> Forked:
    return Forked(**(run.note(0, "forked") or {}))
