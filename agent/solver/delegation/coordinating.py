"""Coordination: parts are searched as soon as they can be, and merged one after another into the integrated state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from threading import Event as Cancel

from agent.budget import BudgetSpent, Stop
from agent.engine.merge import NotFused
from agent.engine.session import Session
from agent.errors import RamifyError
from agent.evaluate.scorer import StagedScorer
from agent.measure.probing.spectrum import Spectrum
from agent.models import Model
from agent.prompts import handed_on, render
from agent.run.command_queue import new_orders
from agent.run.events import Failed
from agent.solver.delegation.attempts import Ledger, PartAttempt, discard_states, failures, next_attempt
from agent.solver.delegation.integrating import Integration
from agent.solver.delegation.part_search import PartResult, PartSearch
from agent.solver.delegation.plan import SubTask
from agent.solver.delegation.planning import from_note, to_note
from sandboxes import SandboxError

log = logging.getLogger(__name__)

PLAN = "delegation"
"""The key of the note at the root that holds the plan."""


class Delegation:
    """A searcher that extends a chain of integrated states, part by part, in one session. `model` makes the plan; None:
    the plan follows from the coverage of the goal tests."""

    def __init__(self, search_part: PartSearch, model: Model | None, session: Session, scorer: StagedScorer) -> None:
        self._search_part, self._model, self._task = search_part, model, scorer.task
        self._session, self._integration = session, Integration(session, scorer)
        self._components, self._run = session.components, session.run
        self._waiting: set[str] = set()
        self._stop: Stop | None = None
        self.error: Exception | None = None
        """The error that ended the search if the stop is FAILED, or the reason why the last part was not merged."""

    def run(self, cancel: Cancel, done: Callable[[], Stop | None]) -> Stop:
        """Search and merge parts until all are merged or have failed, a limit is reached or `cancel` is set."""
        self._stop = None
        try:
            plan = self._plan
        except (RamifyError, BudgetSpent) as error:
            return self._end(error)
        ledger = self._ledger
        running: dict[Future[PartResult], PartAttempt] = {}
        workers = self._components.workers
        with ThreadPoolExecutor(workers, thread_name_prefix="ramify-part", initializer=handed_on()) as pool:
            while True:
                if (reason := self._reason_to_stop(cancel, done)) is None:
                    for search in self._startable(plan, running.values())[: workers - len(running)]:
                        running[pool.submit(self._search, search)] = search
                if not running:
                    return reason or Stop.EXHAUSTED
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    search = running.pop(future)
                    self._conclude(search, future)
                    ledger.enter(search.directory)

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self._run, self._components.budget)

    @cached_property
    def _plan(self) -> tuple[SubTask, ...]:
        spectrum = Spectrum.from_json(self._run.note(0, "spectrum") or {}) if self._components.localise else Spectrum()
        ask = self._session.gateway.at(0, PLAN)
        plan = from_note(self._session.memo(PLAN, lambda: to_note(self._task, spectrum, self._model, ask)))
        log.info("parts: %s", ", ".join(part.id for part in plan))
        return plan

    def _reason_to_stop(self, cancel: Cancel, done: Callable[[], Stop | None]) -> Stop | None:
        for order in new_orders(self._run):
            self._session.record(order)
        if self._stop is not None:
            return self._stop
        if cancel.is_set():
            return Stop.INTERRUPTED
        return done() or self._components.budget.stop(nodes=1)

    def _end(self, error: Exception) -> Stop:
        self.error = error
        self._stop = error.stop if isinstance(error, BudgetSpent) else Stop.FAILED
        return self._stop

    def _startable(self, plan: tuple[SubTask, ...], running: Collection[PartAttempt]) -> list[PartAttempt]:
        """Return the searches that can be started or continued: all parts that they depend on are merged, and they have
        not failed from the current integrated state."""
        done = {part.id for part in self._integration.merged(plan)}
        busy = done | self._waiting | {search.part.id for search in running}
        ready = [part for part in plan if part.id not in busy and done.issuperset(part.depends_on)]
        searches = [next_attempt(self._run, part, self._integration.tip.id) for part in ready]
        return [search for search in searches if not failures(self._run, search.part.id, search.base)]

    def _search(self, search: PartAttempt) -> PartResult:
        """Search a part, in a worker thread."""
        part, several = search.part, len(self._plan) > 1
        issue = self._task.statement if several else ""
        statement = render(
            "delegate_part",
            statement=part.statement if several else self._task.statement,
            files=part.files if several else (),
            problems=failures(self._run, part.id),
            issue=issue,
        )
        task = replace(self._task, id=f"{self._task.id}/{part.id}", statement=statement, goal_tests=part.goal_tests)
        base = self._run.tree[search.base].snapshot
        return self._search_part(task, base, search.directory, len(self._plan), self._run)

    def _conclude(self, search: PartAttempt, future: Future[PartResult]) -> None:
        """Merge the result of a search, or record why it cannot be merged. A search that a limit ended is continued by
        a later session."""
        try:
            work = future.result()
            if not work.done and work.result.stop not in (Stop.EXHAUSTED, Stop.FINISHED):
                self._wait(search, work)
                return
            if not work.done:
                self._integration.keep(search, work)
                raise NotFused(str(work.result.error or "its search found nothing that makes its tests pass"))
            self._integration.merge(self._plan, search, work)
        except NotFused as why:
            self._fail(search, why)
        except (RamifyError, SandboxError) as error:
            self._end(error)
            return
        discard_states(self._components.provider, search.directory)

    def _wait(self, search: PartAttempt, work: PartResult) -> None:
        """Leave a search that a limit ended to a later session."""
        self._waiting.add(search.part.id)
        self._integration.keep(search, work)
        if work.result.stop is Stop.FAILED:
            self._end(work.result.error or RamifyError(f"the search of part {search.part.id} failed"))

    def _fail(self, search: PartAttempt, why: NotFused) -> None:
        name = search.part.id
        log.info("part %s: %s", name, why)
        self.error = why
        self._session.record(Failed(search.base, str(why), f"merge {name}", name, self._components.budget.elapsed_s))
