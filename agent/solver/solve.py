"""solve(): from a task to a verified patch.

Invariant: there is always an answer. At any limit or error the best patch so far is verified from the base state and
returned; after a signal it is returned at once, and verified when the run is resumed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from agent.budget import Stop
from agent.engine.components import Components
from agent.engine.engine import Engine
from agent.engine.session import Session
from agent.errors import ModelError, RamifyError
from agent.evaluate.scorer import StagedScorer
from agent.run.events import Event
from agent.run.run import Run
from agent.solver import root_state
from agent.solver.cancelling import on_cancel
from agent.solver.candidates import CandidatePool
from agent.solver.outcome import end, never_begun, record_failed_start, result_of
from agent.solver.result import Result
from agent.solver.rounds import Rounds
from agent.solver.salvage import salvaging
from agent.solver.searcher import MakeSearcher, Searcher
from agent.task import Task
from sandboxes import SandboxError, StoreFull


def solve(
    task: Task,
    components: Components,
    run: Run,
    *,
    settings: Mapping[str, Any] | None = None,
    cancel: threading.Event | None = None,
    on_event: Callable[[Event], None] | None = None,
    prior_run: Run | None = None,
    begin: MakeSearcher = Engine,
    unfinished: bool = False,
) -> Result:
    """Start or resume a run and continue until it is solved, exhausted, out of budget or cancelled; with rounds, until
    all its rollouts are finished. States that `prior_run`, another run of the task, has measured are not measured
    again, but the final patch is always verified. `begin` makes the searcher; by default it is an engine. `unfinished`:
    the searcher has work left to do even though the run is finished.

    Raises:
        agent.errors.UsageError, agent.errors.MeasureError: the base state cannot be measured as requested.
        sandboxes.SandboxError: the base state cannot be made.
    """
    if run.ended is not None and run.finished and not unfinished:
        return result_of(run, run.ended)
    session = Session(task, components, run, cancel or threading.Event(), on_event or (lambda event: None), prior_run)
    components.budget.start(spent=run.usage, nodes=len(run.tree), elapsed_s=run.elapsed_s)
    scorer = _root(session, settings or {})
    if scorer is None:
        return (
            end(session, "no_patch", None, Stop.INTERRUPTED, None, {})
            if run.started
            else never_begun(run.journal.directory)
        )
    pool = CandidatePool(session, scorer)
    searcher = begin(session, scorer)
    with salvaging(session, pool):
        return _answer(session, searcher, pool)


def _root(session: Session, settings: Mapping[str, Any]) -> StagedScorer | None:
    """Make and measure the root state. Returns its scorer; None if the session was cancelled before that. If the root
    state cannot be measured, the run ends with the reason, unless it has an answer already."""
    run = session.run
    try:
        with _interruptible(session):
            return root_state.measure(session, root_state.make(session, settings))
    except (RamifyError, SandboxError) as error:
        if len(run.tree) <= 1 and session.cancel.is_set():
            return None
        if run.started is not None and run.ended is None and len(run.tree) <= 1:
            record_failed_start(session, error)
        raise


def _interruptible(session: Session) -> AbstractContextManager[None]:
    """Close the provider if the session is cancelled during the block, so that it does not wait for a setup or a whole
    test run. The provider stays open if it is shared with another run (`prior_run`), or if the run may have an
    answer."""
    if session.prior_run is not None or len(session.run.tree) > 1:
        return nullcontext()
    return on_cancel(session.cancel, session.components.provider.close)


def _answer(session: Session, searcher: Searcher, pool: CandidatePool) -> Result:
    run, components = session.run, session.components
    try:
        if components.rounds:
            stop = Rounds(session, components.rounds, searcher, pool).run()
        else:
            stop = _until_done(searcher, pool, session.cancel)
    except StoreFull as full:
        return pool.finish(Stop.FAILED, full)
    except BaseException as error:
        pool.finish(Stop.FAILED, error)
        raise
    if stop is Stop.TIME and (model := session.gateway.silent):
        return pool.finish(stop, ModelError(f"{model} gave no answer before the time was up; check its server"))
    nothing_came = stop in (Stop.EXHAUSTED, Stop.FINISHED) and len(run.tree) == 1
    return pool.finish(stop, searcher.error if stop is Stop.FAILED or nothing_came else None)


def _until_done(searcher: Searcher, pool: CandidatePool, cancel: threading.Event) -> Stop:
    """Search until a solved state passes its verification, the requested lines of work are submitted and checked, or
    the search ends for another reason."""
    while (stop := searcher.run(cancel, pool.done)) in (Stop.SOLVED, Stop.SUBMITTED):
        node = pool.unchecked()
        if node is None or pool.verdict(node)["solved"]:
            break
    return stop
