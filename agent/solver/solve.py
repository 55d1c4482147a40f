"""solve(): from a task to a verified patch.

Law: there is always an answer. At any limit, error or signal the best patch so far is verified from the base state and
returned; the run on disk can be resumed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from agent.budget import Stop
from agent.engine.components import Parts
from agent.engine.engine import Grower
from agent.evaluate.scorer import GoalsFirst
from agent.run.events import Event
from agent.run.run import Run
from agent.run.schedule import Formations
from agent.solver import root_state as base
from agent.solver.candidates import Answers
from agent.solver.growth import Begin, Growth
from agent.solver.outcome import result_of
from agent.solver.result import Result
from agent.solver.rounds import Waves
from agent.solver.salvage import salvaging
from agent.solver.session import Sitting
from agent.task import Task
from sandboxes import StoreFull

__all__ = ["Result", "search", "solve"]


def solve(
    task: Task,
    parts: Parts,
    run: Run,
    *,
    settings: Mapping[str, Any] | None = None,
    cancel: threading.Event | None = None,
    on_event: Callable[[Event], None] | None = None,
    known: Run | None = None,
    begin: Begin | None = None,
) -> Result:
    """Begin a run or go on with it, until it is solved, exhausted, out of budget or cancelled; in waves, until all its
    rollouts are finished. What `known`, another run of the task, measured of a state is not measured again; the patch
    in the end is verified in any case. `begin` makes what grows the tree, where that is not a search.

    Raises:
        agent.errors.UsageError, agent.errors.MeasureError: the base state cannot be measured as asked.
        sandboxes.SandboxError: the base state cannot be made.
    """
    if run.ended is not None and run.over:
        return result_of(run, run.ended)
    sitting = Sitting(task, parts, run, cancel or threading.Event(), on_event or (lambda event: None), known)
    parts.budget.start(spent=run.usage, nodes=len(run.tree), elapsed_s=run.elapsed_s)
    scorer = base.measure(sitting, base.make(sitting, settings or {}))
    answers = Answers(sitting, scorer)
    grower = (begin or search)(sitting, scorer)
    with salvaging(sitting, answers):
        return _answer(sitting, grower, answers)


def search(sitting: Sitting, scorer: GoalsFirst, order: Formations = ()) -> Growth:
    """What grows a tree by searching; `order` is as for `agent.engine.engine.Grower`."""
    return Grower(scorer.task, sitting.parts, sitting.run, scorer, sitting.asker, sitting.once, sitting.on_event, order)


def _answer(sitting: Sitting, grower: Growth, answers: Answers) -> Result:
    run, parts = sitting.run, sitting.parts
    try:
        if parts.waves:
            stop = Waves(sitting, parts.waves, grower, answers).grow()
        else:
            stop = _until_done(grower, answers, sitting.cancel)
    except StoreFull as full:
        return answers.finish(Stop.FAILED, full)
    except BaseException as error:
        answers.finish(Stop.FAILED, error)
        raise
    nothing_came = stop in (Stop.EXHAUSTED, Stop.FINISHED) and len(run.tree) == 1
    return answers.finish(stop, grower.error if stop is Stop.FAILED or nothing_came else None)


def _until_done(grower: Growth, answers: Answers, cancel: threading.Event) -> Stop:
    """Grow until a solved state stands its verification, the lines of work that were asked for are submitted and
    checked, or growth ends for another reason."""
    while (stop := grower.grow(cancel, answers.done)) in (Stop.SOLVED, Stop.SUBMITTED):
        node = answers.unchecked()
        if node is None or answers.verdict(node)["solved"]:
            break
    return stop
