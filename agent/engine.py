"""grow(): select -> fork -> propose -> act -> measure -> record, by as many workers as are asked for.

Laws: an expansion that goes wrong is an event, not a retry for ever; a worker stops between two steps and never in the
middle of a record, so that whatever ends the search leaves a tree that can be resumed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from agent.budget import BudgetSpent, Stop, Usage
from agent.discarding import make_room
from agent.drafts import Drafts, drafts
from agent.errors import PolicyError, RamifyError
from agent.inbox import new_orders
from agent.journal import Added, Event, Exhausted, Failed, Merged, Spent
from agent.measure import SuiteReport
from agent.parts import Parts, Scorer
from agent.policy import Position
from agent.run import Run
from agent.search import Choice
from agent.steering import choose
from agent.task import Task
from agent.tree import Node, NodeId, Step
from agent.turns import Taken, Turns
from sandboxes import Sandbox, SandboxError, Snapshot, StateDamaged, StoreFull

__all__ = ["Grower"]

log = logging.getLogger(__name__)

FAILURES_PER_NODE = 3
"""A node whose expansions failed so often is closed."""
FAILURES_IN_A_ROW = 10
"""So many failures of the sandbox without one success end the run."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ticket:
    """One expansion: which node, and the how-manieth of it and of the run."""

    choice: Choice
    index: int
    number: int

    @property
    def node(self) -> NodeId:
        return self.choice.node


class Grower:
    """Grows a run's tree until it is told to stop. One object, one sitting."""

    def __init__(self, task: Task, parts: Parts, run: Run, scorer: Scorer, on_event: Callable[[Event], None]) -> None:
        self._task = task
        self._parts = parts
        self._run = run
        self._scorer = scorer
        self._on_event = on_event
        self._changed = threading.Condition()
        self._stop: Stop | None = None
        self._in_flight: set[_Ticket] = set()
        self._failures_in_a_row = 0
        self.error: Exception | None = None
        """What ended the growth when the stop is FAILED, or made the last expansion fail."""

    def grow(self, cancel: threading.Event, solved: Callable[[], bool]) -> Stop:
        """Expand nodes until one is solved, nothing is left, a limit is reached or `cancel` is set."""
        self._cancel, self._solved, self._stop = cancel, solved, None
        if self._parts.workers == 1:
            self._work()
        else:
            with ThreadPoolExecutor(self._parts.workers, thread_name_prefix="ramify") as pool:
                for future in [pool.submit(self._work) for _ in range(self._parts.workers)]:
                    future.result()
        assert self._stop is not None
        return self._stop

    def _work(self) -> None:
        try:
            while (ticket := self._next()) is not None:
                with drafts(self._parts.provider) as made:
                    try:
                        self._expand(ticket, made)
                    finally:
                        self._land(ticket)
        except BaseException:
            self._end(Stop.FAILED)
            raise

    def _land(self, ticket: _Ticket) -> None:
        """The expansion is in flight no longer."""
        with self._changed:
            if ticket in self._in_flight:
                self._in_flight.remove(ticket)
                self._run.tree.end(ticket.node)
                self._changed.notify_all()

    def _next(self) -> _Ticket | None:
        """Choose the next expansion; wait while only work in flight can open new ones."""
        tree = self._run.tree
        with self._changed:
            while (stop := self._reason_to_stop()) is None:
                number = tree.ended_expansions + tree.in_flight
                choice = self._choose(Random(f"{self._parts.seed}/select/{number}"))
                if choice is not None:
                    ticket = _Ticket(choice, tree.expansions(choice.node), number)
                    tree.begin(choice.node)
                    self._in_flight.add(ticket)
                    return ticket
                if not tree.in_flight:
                    stop = Stop.EXHAUSTED
                    break
                self._changed.wait(timeout=0.5)
        self._end(stop)
        return None

    def _choose(self, rng: Random) -> Choice | None:
        """What people ordered, else what the search selects."""
        for order in new_orders(self._run):
            self._record(order)
        in_flight = {ticket.choice.order for ticket in self._in_flight}
        return choose(self._run.tree, self._run.steering, self._parts.search, rng, in_flight)

    def _reason_to_stop(self) -> Stop | None:
        if self._stop is not None:
            return self._stop
        if self._cancel.is_set():
            return Stop.INTERRUPTED
        if self._solved():
            return Stop.SOLVED
        return self._parts.budget.stop(nodes=self._run.tree.in_flight + 1)

    def _end(self, stop: Stop) -> None:
        with self._changed:
            self._stop = self._stop or stop
            self._changed.notify_all()

    def _expand(self, ticket: _Ticket, made: Drafts) -> None:
        """One expansion, from the node to the event that says how it ended. Its measurement and its room on the disk
        are looked for before anything is paid for, so that no proposal is thrown away for want of them."""
        try:
            with self._changed:
                make_room(self._parts.provider, self._run)
            with self._parts.budget.reserve(Usage(measurements=1)):
                self._grow_child(ticket, made)
            self._failures_in_a_row = 0
        except BudgetSpent as spent:
            self._end(spent.stop)
        except PolicyError as error:
            self._fail(ticket, error)
        except (StoreFull, StateDamaged) as error:  # no fault of the node's: it is tried again by a later sitting
            self.error = error
            self._end(Stop.FAILED)
        except SandboxError as error:
            self._failures_in_a_row += 1
            self._fail(ticket, error)
            if self._failures_in_a_row >= FAILURES_IN_A_ROW:
                self._end(Stop.FAILED)
        except RamifyError as error:
            self.error = error
            self._end(Stop.FAILED)

    def _fail(self, ticket: _Ticket, error: Exception) -> None:
        log.info("expansion %d of node %d failed: %s", ticket.number, ticket.node, error)
        self.error = error
        elapsed = self._parts.budget.elapsed_s
        self._conclude(ticket, Failed(ticket.node, str(error), elapsed_s=elapsed, choice=ticket.choice))
        if len(self._run.tree.failures(ticket.node)) >= FAILURES_PER_NODE:
            self._record(Exhausted(ticket.node))

    def _grow_child(self, ticket: _Ticket, made: Drafts) -> None:
        parts, tree = self._parts, self._run.tree
        turns = Turns(parts.provider, parts.policy, parts.turns_per_node, made, self._show_tests)
        rng = Random(f"{parts.seed}/{ticket.node}/{ticket.index}")
        taken = turns.take(tree[ticket.node].snapshot, rng, partial(self._position, ticket))
        if taken.steps:
            self._settle(ticket, taken, made)
        else:
            self._record(Exhausted(ticket.node))

    def _position(self, ticket: _Ticket, box: Sandbox, steps: tuple[Step, ...]) -> Position:
        tree = self._run.tree
        return Position(
            task=self._task,
            path=tree.path(ticket.node),
            index=ticket.index,
            siblings=tuple(tree.children(ticket.node)),
            failures=tree.failures(ticket.node),
            kind=ticket.choice.kind,
            hint=ticket.choice.hint,
            steps=steps,
            box=box,
            spend=lambda usage: self._spend(usage, "model", ticket.node),
        )

    def _show_tests(self, state: Snapshot, tests: tuple[str, ...]) -> SuiteReport:
        report, runs = self._scorer.run_tests(state, tests)
        self._spend(Usage(measurements=runs), "tests", None)
        return report

    def _settle(self, ticket: _Ticket, taken: Taken, made: Drafts) -> None:
        """Measure the state that an expansion reached and record it, or the node that already holds it."""
        parent, state = self._run.tree[ticket.node], taken.state
        if state.digest == parent.state_hash:
            report, evaluation = parent.report, parent.evaluation
        elif (known := self._run.tree.with_state(state.digest)) is not None:
            self._merge(ticket, known, taken.last.label)
            return
        else:
            report, evaluation, runs = self._scorer.score(state, self._run.tree.path(parent.id))
            self._spend(Usage(measurements=runs), "tests", parent.id)
        node = Node(
            id=-1,
            parents=(parent.id,),
            steps=taken.steps,
            snapshot=state,
            report=report,
            evaluation=evaluation,
            prior=taken.last.prior,
            policy_id=taken.last.policy_id or self._parts.policy.policy_id,
            terminal=taken.submitted or evaluation.solved,
            label=taken.last.label,
            kind=ticket.choice.kind,
        )
        self._add(ticket, node, made)

    def _add(self, ticket: _Ticket, node: Node, made: Drafts) -> None:
        """Record a node under the next id, or as a second edge when another worker was first with its state."""
        with self._changed:
            tree = self._run.tree
            known = tree.with_state(node.state_hash)
            if known is not None and node.state_hash != tree[ticket.node].state_hash:
                self._merge(ticket, known, node.label)
                return
            made.keep(node.snapshot)
            elapsed = self._parts.budget.elapsed_s
            self._conclude(ticket, Added(replace(node, id=len(tree)), elapsed_s=elapsed, choice=ticket.choice))
            self._parts.budget.count_node()

    def _merge(self, ticket: _Ticket, known: Node, label: str) -> None:
        elapsed = self._parts.budget.elapsed_s
        self._conclude(ticket, Merged(ticket.node, known.id, label, elapsed_s=elapsed, choice=ticket.choice))

    def _spend(self, usage: Usage, what: str, node: NodeId | None) -> None:
        self._parts.budget.settle(usage)
        self._record(Spent(usage, what, node))

    def _conclude(self, ticket: _Ticket, event: Event) -> None:
        """Record what came of an expansion. It is counted once at any time: as one in flight, or by this event."""
        with self._changed:
            self._record(event)
            self._land(ticket)

    def _record(self, event: Event) -> None:
        with self._changed:
            self._run.record(event)
        self._on_event(event)
