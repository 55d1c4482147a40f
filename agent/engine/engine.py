"""Engine: select -> fork -> propose -> act -> measure -> record, by as many workers as are asked for.

Laws: an expansion that goes wrong is an event, not a retry for ever; a worker stops between two steps and never in the
middle of a record, so that whatever ends the search leaves a tree that can be resumed; what was in flight then is begun
again before anything else is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import assert_never

from agent.budget import BudgetSpent, Stop, Usage
from agent.engine.completion import FinishedRollouts
from agent.engine.components import Components, Scorer
from agent.engine.expansion import Acts
from agent.engine.in_flight import InFlight, Ticket
from agent.engine.merge import NotFused
from agent.engine.model_calls import ModelGateway
from agent.engine.scheduled_replay import follow
from agent.engine.selection import choose
from agent.errors import PolicyError, RamifyError, Stopped
from agent.policy.panel import Panel
from agent.prompts import handed_on
from agent.run.command_queue import new_orders
from agent.run.events import Added, Event, Exhausted, Failed, Merged, Remeasured, Spent
from agent.run.eviction import make_room
from agent.run.in_progress import TRIES
from agent.run.memo import Memo
from agent.run.run import Run
from agent.run.schedule import Schedule, ScheduleEntry
from agent.run.temporary_snapshots import TemporarySnapshots, temporary_snapshots
from agent.run.tree.choice import Choice
from agent.run.tree.proposals import proposal_of
from agent.run.tree.tree import Node, NodeId
from agent.search.continuing import OpenLines
from agent.task import Task
from sandboxes import SandboxError, StateDamaged, StoreFull

__all__ = ["Engine"]

log = logging.getLogger(__name__)

FAILURES_PER_NODE = 3
"""A node whose expansions failed so often is closed."""
FAILURES_IN_A_ROW = 10
"""So many failures of the sandbox without one success end the run."""


class Engine:
    """Grows a run's tree until it is told to stop. One object, one session."""

    def __init__(
        self,
        task: Task,
        parts: Components,
        run: Run,
        scorer: Scorer,
        asker: ModelGateway,
        once: Memo,
        on_event: Callable[[Event], None],
        order: Schedule = (),
    ) -> None:
        """`order`: what is done again first, as `agent.run.schedule.schedule` has it; for one worker, who is
        alone."""
        self._parts = parts
        self._run = run
        self._on_event = on_event
        self._panel = Panel((parts.policy, *parts.others))
        self._mixed = bool(parts.others)
        self._acts = Acts(task, parts, run, scorer, asker, once, self._spend, self._stopped)
        self._changed = threading.Condition()
        self._stop: Stop | None = None
        self._order, self._in_flight = list(order), InFlight(run)
        self._failures_in_a_row = 0
        self.error: Exception | None = None
        """What ended the growth when the stop is FAILED, or made the last expansion fail."""

    def run(self, cancel: threading.Event, done: Callable[[], Stop | None]) -> Stop:
        """Expand nodes until it is done, nothing is left, a limit is reached or `cancel` is set."""
        self._cancel, self._done, self._stop = cancel, done, None
        self._in_flight = InFlight(self._run)
        if self._parts.workers == 1:
            self._work()
        else:
            workers = self._parts.workers
            with ThreadPoolExecutor(workers, thread_name_prefix="ramify", initializer=handed_on()) as pool:
                for future in [pool.submit(self._work) for _ in range(workers)]:
                    future.result()
        assert self._stop is not None
        return self._stop

    def _work(self) -> None:
        try:
            follow(self._order, self)
            while (ticket := self._next()) is not None:
                self.see_through(ticket)
        except BaseException:
            self._end(Stop.FAILED)
            raise

    def see_through(self, ticket: Ticket, flight: ScheduleEntry | None = None) -> None:
        """Carry a choice out, to its end; as another one ended, where `flight` is given."""
        if flight is not None:
            self._in_flight.cuts[ticket] = flight.cut
        with temporary_snapshots(self._parts.provider) as made:
            try:
                self._carry_out(ticket, made)
            finally:
                self.land(ticket)

    def land(self, ticket: Ticket) -> None:
        """A choice is in flight no longer, whatever came of it."""
        with self._changed:
            if self._in_flight.land(ticket):
                self._changed.notify_all()

    def begin(self) -> Ticket | None:
        """The next choice, in flight from now on; None: there is none now, or the search is to stop."""
        with self._changed:
            while self._reason_to_stop() is None and not self._in_flight.suspect:
                number = self._run.tree.ended_expansions + self._run.tree.in_flight
                for order in new_orders(self._run):
                    self._record(order)
                if (lost := self._lost(number)) is not None:
                    return None if lost.suspect and self._run.tree.in_flight else self._begin(lost)
                if (choice := self._choose(Random(f"{self._parts.seed}/select/{number}"), number)) is None:
                    break
                if (ticket := self._ticket(choice, number)) is not None:
                    return self._begin(ticket)
            return None

    def _begin(self, ticket: Ticket) -> Ticket:
        self._record(ticket.event)
        self._in_flight.begin(ticket)
        return ticket

    def _lost(self, number: int) -> Ticket | None:
        """What was in flight when it was lost, and is to be begun again as it was; None: nothing is."""
        tree, underway = self._run.tree, self._run.underway
        for each in underway:
            choice, policy = each.choice, self._panel.member(each.policy_id)
            asks = choice.act == "expand"
            if self._in_flight.has(each) or tree.pruned(choice.node) or (asks and policy is None):
                continue
            serial, lost = self._in_flight.begun, underway.times(each)
            return Ticket(choice, policy, each.index, number, serial, each.nodes, each.attempts, lost)
        return None

    def _next(self) -> Ticket | None:
        """Begin the next choice; wait while only work in flight can open new ones."""
        with self._changed:
            while (ticket := self.begin()) is None:
                stop = self._reason_to_stop() or (None if self._run.tree.in_flight else Stop.EXHAUSTED)
                if stop is not None:
                    self._end(stop)
                    return None
                self._changed.wait(timeout=0.5)
            return ticket

    def _ticket(self, choice: Choice, number: int) -> Ticket | None:
        """Who carries the choice out; None, and the node closed, when no policy has anything left to propose there."""
        tree, node, policy = self._run.tree, choice.node, None
        if choice.act == "expand":
            policy = self._panel.member(tree[node].policy_id) if choice.continues else None
            policy = policy or self._panel.pick(tree, node, Random(f"{self._parts.seed}/policy/{number}"))
            if policy is None:
                self._record(Exhausted(node))
                return None
        index = self._run.next((node, choice.act, choice.other, policy.policy_id if policy else ""))
        return Ticket(choice, policy, index, number, self._in_flight.begun, len(tree), len(self._run.attempts(node)))

    def _choose(self, rng: Random, number: int) -> Choice | None:
        """What people ordered, else the line of work that waits, else what the search selects. Several policies on one
        tree take turns with that."""
        run, parts = self._run, self._parts
        continuing = parts.lines is not None and not (self._mixed and number % 2)
        room = None if self._mixed else self._room()
        orders = self._in_flight.orders
        return choose(run.tree, run.steering, parts.search, rng, orders, run.wave, continuing=continuing, lines=room)

    def _room(self) -> int | None:
        """How many lines of work may be in flight: those that are wanted and have not ended; None: there are no
        lines."""
        if self._parts.lines is None:
            return None
        tree = self._run.wave or self._run.tree
        if self._parts.waves:
            return self._parts.waves.rollouts - tree.view((FinishedRollouts, False), FinishedRollouts).count
        ended = tree.view(OpenLines, OpenLines).ended
        return max(1, self._parts.lines - sum(tree[node_id].submitted for node_id in ended))

    def _reason_to_stop(self) -> Stop | None:
        if self._stop is not None:
            return self._stop
        if self._cancel.is_set():
            return Stop.INTERRUPTED
        if (stop := self._done()) is not None:
            return stop
        return self._parts.budget.stop(nodes=self._run.tree.in_flight + 1)

    def _stopped(self, ticket: Ticket, turns: int) -> bool:
        """Whether an expansion ends after so many turns, and is recorded as far as it has come."""
        cuts, cancelled = self._in_flight.cuts, self._cancel.is_set()
        with self._changed:
            if ticket not in cuts and (cancelled or self._done() is not None or self._parts.budget.used_up()):
                cuts[ticket] = turns
        return cancelled or turns == cuts.get(ticket)

    def _end(self, stop: Stop) -> None:
        with self._changed:
            self._stop = self._stop or stop
            self._changed.notify_all()
        if stop is Stop.FAILED:
            self._parts.halt.fail()

    def _carry_out(self, ticket: Ticket, made: TemporarySnapshots) -> None:
        """One choice, to the event that says what came of it. Its measurement and its room on the disk are looked for
        before anything is paid for, so that no proposal is thrown away for want of them."""
        try:
            make_room(self._parts.provider, self._run, self._changed)
            with self._parts.budget.reserve(Usage(measurements=1)):
                self._act(ticket, made)
            self._failures_in_a_row = 0
        except BudgetSpent as spent:
            self._end(spent.stop)
        except Stopped as error:  # `_next` finds out why, and the expansion is begun anew by a later session
            log.info("choice %d at node %d: %s", ticket.number, ticket.node, error)
        except (PolicyError, NotFused) as error:
            self._fail(ticket, error)
        except (StoreFull, StateDamaged) as error:  # no fault of the node's: it is tried again by a later session
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

    def _act(self, ticket: Ticket, made: TemporarySnapshots) -> None:
        if ticket.lost >= TRIES:
            raise PolicyError(f"the process that carried it out was killed each of {ticket.lost} times")
        match ticket.choice.act:
            case "expand":
                child, error = self._acts.expand(ticket, made)
                if child is None:
                    self._conclude(ticket, self._left(ticket))
                else:
                    self._settle(ticket, child, made)
                if error is not None:
                    self._take_note(error)
            case "fuse":
                self._settle(ticket, self._acts.fuse(ticket, made), made)
            case "measure":
                self._conclude(ticket, self._acts.measure_again(ticket))
            case unknown:
                assert_never(unknown)

    def _take_note(self, error: RamifyError | BudgetSpent) -> None:
        """Of what ended an expansion after some turns, which are recorded. Only a policy's own fault is no reason to
        end the run."""
        if isinstance(error, BudgetSpent):
            self._end(error.stop)
        elif not isinstance(error, Stopped):
            self.error = error
            if not isinstance(error, PolicyError):
                self._end(Stop.FAILED)

    def _fail(self, ticket: Ticket, error: Exception) -> None:
        log.info("choice %d at node %d failed: %s", ticket.number, ticket.node, error)
        self.error = error
        elapsed = self._parts.budget.elapsed_s
        failed = Failed(ticket.node, str(error), "", ticket.policy_id, elapsed, ticket.choice)
        with self._changed:
            self._conclude(ticket, failed)
            if ticket.choice.act == "expand":
                own = [a for a in self._run.attempts(ticket.node) if a.policy_id == ticket.policy_id]
                if sum(attempt.child is None for attempt in own) >= FAILURES_PER_NODE:
                    self._record(self._left(ticket))
            elif len(self._run.tree.failures(ticket.node)) >= FAILURES_PER_NODE:
                self._record(Exhausted(ticket.node))

    def _left(self, ticket: Ticket) -> Exhausted:
        """The policy has nothing left to propose at the node; the last one closes it."""
        last = self._panel.alone(self._run.tree, ticket.node, ticket.policy_id)
        return Exhausted(ticket.node, "" if last else ticket.policy_id)

    def _settle(self, ticket: Ticket, child: Node, made: TemporarySnapshots) -> None:
        """Measure the state that was reached and record it, or the node that stands for it already."""
        if (known := self._known(ticket, child)) is not None:
            self._merge(ticket, known, child)
        elif child.state_hash == self._run.tree[ticket.node].state_hash:
            self._add(ticket, child, made)
        else:
            self._add(ticket, self._acts.measured(child), made)

    def _known(self, ticket: Ticket, child: Node) -> Node | None:
        """What the same proposal led to before, else who holds its state. That of the parent is held by no other, and a
        conversation is like no other, although it comes to the same state."""
        tree = self._run.tree
        if child.by_model:
            return None
        if (same := tree.proposals.known(ticket.node, proposal_of(child.steps))) is not None:
            return tree[same]
        return None if child.state_hash == tree[ticket.node].state_hash else tree.with_state(child.state_hash)

    def _add(self, ticket: Ticket, node: Node, made: TemporarySnapshots) -> None:
        """Record a node under the next id, or as a second edge when another worker was first with it."""
        with self._changed:
            if (known := self._known(ticket, node)) is not None:
                self._merge(ticket, known, node)
                return
            made.keep(node.snapshot)
            elapsed, number = self._parts.budget.elapsed_s, len(self._run.tree)
            self._conclude(ticket, Added(replace(node, id=number), elapsed_s=elapsed, choice=ticket.choice))
            self._parts.budget.count_node()

    def _merge(self, ticket: Ticket, known: Node, child: Node) -> None:
        elapsed, proposal = self._parts.budget.elapsed_s, proposal_of(child.steps)
        merged = Merged(ticket.node, known.id, child.label, ticket.policy_id, elapsed, ticket.choice, proposal)
        self._conclude(ticket, merged)

    def _spend(self, usage: Usage, what: str, node: NodeId | None) -> None:
        """Nobody waits for the disk that holds the tree meanwhile: it does not change."""
        self._parts.budget.settle(usage)
        event = Spent(usage, what, node)
        self._run.record(event)
        self._on_event(event)

    def _conclude(self, ticket: Ticket, event: Added | Merged | Remeasured | Failed | Exhausted) -> None:
        """Record what came of an expansion. It is counted once at any time: as one in flight, or by this event."""
        with self._changed:
            self._record(replace(event, flight=self._in_flight.flight(ticket)))
            self.land(ticket)

    def _record(self, event: Event) -> None:
        with self._changed:
            self._run.record(event)
        self._on_event(event)
