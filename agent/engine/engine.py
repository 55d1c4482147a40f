"""The engine: workers select, expand, measure and record, until there is a reason to stop.

Invariants: a failed expansion is recorded as an event; it is not retried indefinitely. A worker stops between two steps
and never in the middle of a record, so that whatever ends the search leaves a tree that can be resumed. Work that was
in flight then is restarted before anything else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

from agent.budget import BudgetSpent, Stop, Usage
from agent.engine.completion import FinishedRollouts
from agent.engine.expansion import Context, Expansion, ExpansionResult
from agent.engine.in_flight import InFlight
from agent.engine.merge import NotFused
from agent.engine.scheduled_replay import follow
from agent.engine.selection import choose
from agent.engine.session import Session
from agent.errors import PolicyError, RamifyError, Stopped
from agent.evaluate.scorer import StagedScorer
from agent.policy import Policy
from agent.policy.panel import Panel
from agent.prompts import handed_on
from agent.run.command_queue import new_orders
from agent.run.events import Added, Event, Exhausted, Failed, Merged, Remeasured
from agent.run.eviction import make_room
from agent.run.schedule import Schedule, ScheduleEntry
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.choice import Choice
from agent.search.continuing import OpenLines, continued
from sandboxes import SandboxError, SandboxLost, StateDamaged, StoreFull

log = logging.getLogger(__name__)

FAILURES_PER_NODE = 3
"""A node whose expansions failed this often is closed."""
FAILURES_IN_A_ROW = 10
"""This many failures of the sandbox in a row end the run."""


class Engine:
    """Expands a run's tree until there is a reason to stop. One object serves one session."""

    def __init__(
        self, session: Session, scorer: StagedScorer, schedule: Schedule = (), *, unfinished: bool = False
    ) -> None:
        """`schedule` (`agent.run.schedule`) is repeated by a single worker before anything is selected. `unfinished`:
        first finish all waiting lines of work, of all rounds."""
        self._session, self._components, self._run = session, session.components, session.run
        self._panel = Panel((self._components.policy, *self._components.others))
        self._mixed = bool(self._components.others)
        self._context = Context(session, scorer, self._ends_after)
        self._changed = threading.Condition()
        self._schedule = list(schedule)
        self._failures_in_a_row = 0
        self._unfinished = unfinished
        self.error: Exception | None = None
        """The error that ended the search if the stop is FAILED, or that made the last expansion fail."""

    def run(self, cancel: threading.Event, done: Callable[[], Stop | None]) -> Stop:
        """Expand nodes until `done` gives a reason to stop, nothing is left, a limit is reached or `cancel` is set."""
        if self._unfinished and self._grow(cancel, lambda: None) is Stop.FAILED:
            return Stop.FAILED
        self._unfinished = False
        return self._grow(cancel, done)

    def _grow(self, cancel: threading.Event, done: Callable[[], Stop | None]) -> Stop:
        self._cancel, self._done = cancel, done
        self._stop: Stop | None = None
        self._in_flight = InFlight(self._run)
        workers = self._components.workers
        if workers == 1:
            self._work()
        else:
            with ThreadPoolExecutor(workers, thread_name_prefix="ramify", initializer=handed_on()) as pool:
                for future in [pool.submit(self._work) for _ in range(workers)]:
                    future.result()
        assert self._stop is not None
        return self._stop

    def _work(self) -> None:
        try:
            self._sync()
            follow(self._schedule, self)
            while (expansion := self._wait_for_expansion()) is not None:
                self.carry_out(expansion)
                self._sync()
        except BaseException:
            self._end(Stop.FAILED)
            raise

    def _sync(self) -> None:
        if self._components.exchange:
            self._components.exchange.sync(self._run, self._components.provider)

    # The next expansion

    def _wait_for_expansion(self) -> Expansion | None:
        """Start the next expansion; wait while only work in flight can open new ones. None: the search stops."""
        with self._changed:
            while (expansion := self.next_expansion()) is None:
                stop = self._reason_to_stop() or (None if self._run.tree.in_flight else Stop.EXHAUSTED)
                if stop is not None:
                    self._end(stop)
                    return None
                self._changed.wait(timeout=0.5)
            return expansion

    def next_expansion(self) -> Expansion | None:
        """Return the next expansion and count it as in flight. None: there is none now, or the search has to stop."""
        with self._changed:
            while self._reason_to_stop() is None and not self._in_flight.suspect:
                number = self._run.tree.ended_expansions + self._run.tree.in_flight
                for order in new_orders(self._run):
                    self._record(order)
                if (lost := self._lost(number)) is not None:
                    return None if lost.suspect and self._run.tree.in_flight else self._started(lost)
                if (choice := self._choose(Random(f"{self._components.seed}/select/{number}"), number)) is None:
                    break
                if (expansion := self._expansion(choice, number)) is not None:
                    return self._started(expansion)
            return None

    def _started(self, expansion: Expansion) -> Expansion:
        self._record(replace(expansion.begun_event, elapsed_s=self._components.budget.elapsed_s))
        self._in_flight.start(expansion)
        return expansion

    def _lost(self, number: int) -> Expansion | None:
        """Return the oldest expansion that an earlier process started and did not end, with the same index. Return None
        if none is left to repeat."""
        tree, in_progress = self._run.tree, self._run.in_progress
        for begun in in_progress:
            choice, policy = begun.choice, self._panel.member(begun.policy_id)
            policy = self._components.exchange if choice.exchanges else policy
            asks = choice.act == "expand"
            if self._in_flight.has(begun) or tree.pruned(choice.node) or (asks and policy is None):
                continue
            begun_before, lost = self._in_flight.begun_count, in_progress.times(begun)
            return Expansion(
                self._context, choice, policy, begun.index, number, begun_before, begun.nodes, begun.attempts, lost
            )
        return None

    def _expansion(self, choice: Choice, number: int) -> Expansion | None:
        """Return the expansion of a choice, with the policy that proposes. None if no policy has anything left to
        propose at the node, which is then closed."""
        tree, node = self._run.tree, choice.node
        policy: Policy | None = None
        if choice.exchanges:
            policy = self._components.exchange
        elif choice.act == "expand":
            policy = self._panel.member(tree[node].policy_id) if choice.continues else None
            policy = policy or self._panel.pick(tree, node, Random(f"{self._components.seed}/policy/{number}"))
            if policy is None:
                self._record(Exhausted(node))
                return None
        index = self._run.next_index((node, choice.act, choice.other, policy.policy_id if policy else ""))
        begun_before, attempts = self._in_flight.begun_count, 0 if choice.independent else len(self._run.attempts(node))
        return Expansion(self._context, choice, policy, index, number, begun_before, len(tree), attempts)

    def _choose(self, rng: Random, number: int) -> Choice | None:
        """Choose what to do next: try a new state of another run, else carry out an order of the user, else continue
        the line of work that waits, else take what the search selects. Several policies on one tree alternate."""
        run, components = self._run, self._components
        if self._unfinished:
            return continued(run.tree)
        if components.exchange and (brought := components.exchange.next()) is not None:
            return brought
        continuing = components.lines is not None and not (self._mixed and number % 2)
        most = None if self._mixed else self._most_lines()
        orders = self._in_flight.orders
        return choose(
            run.tree, run.steering, components.search, rng, orders, run.round_tree, continuing=continuing, lines=most
        )

    def _most_lines(self) -> int | None:
        """How many lines of work may be in flight: those that are still to be submitted. None: there are no lines."""
        if self._components.lines is None:
            return None
        tree = self._run.round_tree or self._run.tree
        if self._components.rounds:
            finished = tree.view((FinishedRollouts, False), FinishedRollouts).count
            return self._components.rounds.rollouts + self._components.extra_lines - finished
        ended = tree.view(OpenLines, OpenLines).ended
        wanted = self._components.lines + self._components.extra_lines
        return max(1, wanted - sum(tree[node_id].submitted for node_id in ended))

    # One expansion

    def carry_out(self, expansion: Expansion, entry: ScheduleEntry | None = None) -> None:
        """Run an expansion to its end. With `entry`, it ends after as many turns as the recorded one did."""
        if entry is not None:
            self._in_flight.cuts[expansion] = entry.cut
        with TemporarySnapshots(self._components.provider) as temporary:
            try:
                self._try(expansion, temporary)
            finally:
                self.finish(expansion)

    def _try(self, expansion: Expansion, temporary: TemporarySnapshots) -> None:
        """Run an expansion and record its result. A test run and space on the disk are reserved before anything is paid
        for, so that no proposal is wasted because they are missing."""
        try:
            make_room(self._components.provider, self._run, self._changed)
            with self._components.budget.reserve(Usage(measurements=1)):
                self._record_result(expansion, expansion.run(temporary), temporary)
            self._failures_in_a_row = 0
        except BudgetSpent as spent:
            self._end(spent.stop)
        except Stopped as error:  # `_wait_for_expansion` finds out why, and a later session restarts the expansion
            log.info("choice %d at node %d: %s", expansion.number, expansion.node, error)
        except (PolicyError, NotFused) as error:
            self._fail(expansion, error)
        except (StoreFull, StateDamaged) as error:  # not the node's fault: a later session tries it again
            self.error = error
            self._end(Stop.FAILED)
        except SandboxError as error:
            self._failures_in_a_row += 1
            self._fail(expansion, error)
            if self._failures_in_a_row >= FAILURES_IN_A_ROW:
                self._end(Stop.FAILED)
        except RamifyError as error:
            self.error = error
            self._end(Stop.FAILED)

    def _record_result(self, expansion: Expansion, result: ExpansionResult, temporary: TemporarySnapshots) -> None:
        """Record the result of an expansion. A node gets the next id, or becomes a second edge if another worker
        added it first."""
        with self._changed:
            event = result.event
            if isinstance(event, Added):
                if (known := expansion.known_node(event.node)) is not None:
                    event = expansion.merged(known, event.node)
                else:
                    temporary.keep(event.node.snapshot)
                    elapsed_s, number = self._components.budget.elapsed_s, len(self._run.tree)
                    event = replace(event, node=replace(event.node, id=number), elapsed_s=elapsed_s)
            self._conclude(expansion, event or self._nothing_left(expansion))
        error = result.error
        if isinstance(error, BudgetSpent):
            self._end(error.stop)
        elif error is not None and not isinstance(error, Stopped):
            self.error = error
            if not isinstance(error, (PolicyError, SandboxLost)):
                self._end(Stop.FAILED)

    def _fail(self, expansion: Expansion, error: Exception) -> None:
        log.info("choice %d at node %d failed: %s", expansion.number, expansion.node, error)
        self.error = error
        node, policy_id = expansion.node, expansion.policy_id
        failed = Failed(node, str(error), "", policy_id, self._components.budget.elapsed_s, expansion.choice)
        with self._changed:
            self._conclude(expansion, failed)
            if expansion.choice.act == "expand":
                own = [attempt for attempt in self._run.attempts(node) if attempt.policy_id == policy_id]
                if sum(attempt.child is None for attempt in own) >= FAILURES_PER_NODE:
                    self._record(self._nothing_left(expansion))
            elif len(self._run.tree.failures(node)) >= FAILURES_PER_NODE:
                self._record(Exhausted(node))

    def _nothing_left(self, expansion: Expansion) -> Exhausted:
        """Return the event which records that the policy has nothing left to propose at the node. The last policy's
        event closes the node."""
        last = self._panel.others_exhausted(self._run.tree, expansion.node, expansion.policy_id)
        return Exhausted(expansion.node, "" if last else expansion.policy_id)

    def _conclude(self, expansion: Expansion, event: Added | Merged | Remeasured | Failed | Exhausted) -> None:
        """Record the result of an expansion. An expansion is always counted exactly once: as in flight, or by this
        event."""
        with self._changed:
            self._record(replace(event, flight=self._in_flight.entry(expansion)))
            self.finish(expansion)

    def finish(self, expansion: Expansion) -> None:
        """Stop counting an expansion as in flight, whatever its result."""
        with self._changed:
            if self._in_flight.finish(expansion):
                self._changed.notify_all()

    def _record(self, event: Event) -> None:
        with self._changed:
            self._session.record(event)

    # The end

    def _reason_to_stop(self) -> Stop | None:
        if self._stop is not None:
            return self._stop
        if self._cancel.is_set():
            return Stop.INTERRUPTED
        if (stop := self._done()) is not None:
            return stop
        return self._components.budget.stop(nodes=self._run.tree.in_flight + 1)

    def _ends_after(self, expansion: Expansion, turns: int) -> bool:
        """Whether an expansion ends after so many turns, and is recorded in its current state."""
        cuts, cancelled = self._in_flight.cuts, self._cancel.is_set()
        with self._changed:
            if expansion not in cuts and (cancelled or self._done() is not None or self._components.budget.used_up()):
                cuts[expansion] = turns
        return cancelled or turns == cuts.get(expansion)

    def _end(self, stop: Stop) -> None:
        with self._changed:
            self._stop = self._stop or stop
            self._changed.notify_all()
        if stop is Stop.FAILED:
            self._components.halt.fail()
