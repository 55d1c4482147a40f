"""A search on a landscape: a real tree and simulated workers, without a sandbox.

What the engine does with a choice is done here in the same order: begin, propose, measure, record, merge what is known,
close what is exhausted. A run ends when an optimum is measured, nothing is chosen any more or the budget is spent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from agent.actions import Write
from agent.measure import Outcome, SuiteReport
from agent.search import Choice, Search
from agent.tree import Node, NodeId, Step, Tree
from agent.value import Evaluation
from benchmarks.perf.landscape import Curve, Landscape, Move, State, digest, measured
from sandboxes import Snapshot

__all__ = ["Simulation"]

EXHAUSTED_COST = 1.0
"""Of asking a node that has nothing left to propose: as much as a proposal."""
CONFLICT_COST = 0.1
"""Of a merge that conflicts: it asks no policy and runs no test."""
FAILURES_PER_NODE = 3
"""A node whose expansions failed so often is closed, as the engine does."""


@dataclass(frozen=True, slots=True, order=True)
class _Job:
    """Work in flight, ordered by when it ends."""

    ends: float
    number: int
    choice: Choice
    move: Move | None
    """Where it leads; None when nothing is proposed, or a merge conflicts."""
    cost: float


class Simulation:
    """One run of one search on one landscape. Workers are simulated: an expansion takes as long as it costs."""

    def __init__(self, landscape: Landscape, search: Search, budget: float, *, workers: int = 1, seed: int = 0) -> None:
        self.tree = Tree()
        self.states: list[State] = []
        """Of every node."""
        self.curve = Curve()
        self.merged = 0
        """Expansions that led to a state that was known."""
        self._landscape = landscape
        self._search = search
        self._left = budget
        self._workers = workers
        self._seed = seed
        self._now = 0.0
        self._found = 0.0
        self._jobs: list[_Job] = []
        self._proposed: Counter[NodeId] = Counter()
        self._add(landscape.start, (), Move(landscape.start, cost=0.0), "")
        self._note(0.0)

    def run(self) -> Curve:
        """Until it ends; what was found by then."""
        while self.step():
            pass
        return self.curve

    def step(self) -> bool:
        """Go on until something ends; False when nothing is to be waited for."""
        if self.tree.solved or not self._fill():
            return False
        job = heappop(self._jobs)
        self._now = job.ends
        self.tree.end(job.choice.node)
        self._conclude(job)
        self._note(job.cost)
        return True

    def _note(self, cost: float) -> None:
        answer = self._landscape.value(self.states[self.tree.best().id])
        self.curve.spend(cost, self._found, answer)

    def _fill(self) -> bool:
        """Give every idle worker something to do; whether any has."""
        while len(self._jobs) < self._workers:
            number = self.tree.ended_expansions + self.tree.in_flight
            choice = self._search.select(self.tree, Random(f"{self._seed}/select/{number}"))
            if choice is None:
                break
            job = self._begun(choice, number)
            if job.cost > self._left:
                self._left = 0.0
                break
            self._left -= job.cost
            self.tree.begin(choice.node)
            heappush(self._jobs, job)
        return bool(self._jobs)

    def _begun(self, choice: Choice, number: int) -> _Job:
        state = self.states[choice.node]
        if choice.act == "fuse":
            assert choice.other is not None
            both = self._landscape.fused(state, self.states[choice.other])
            move, nothing = None if both is None else Move(both), CONFLICT_COST
        else:
            move, nothing = self._landscape.move(state, self._proposed[choice.node]), EXHAUSTED_COST
            self._proposed[choice.node] += 1
        cost = move.cost if move else nothing
        return _Job(self._now + cost, number, choice, move, cost)

    def _conclude(self, job: _Job) -> None:
        choice, tree = job.choice, self.tree
        if job.move is None and choice.act == "fuse":
            tree.fail(choice.node, "the branches conflict")
            if len(tree.failures(choice.node)) >= FAILURES_PER_NODE:
                tree.close(choice.node)
        elif job.move is None:
            tree.close(choice.node)
        elif (known := tree.with_state(digest(job.move.state))) is not None:
            self.merged += 1
            tree.merge(choice.node, known.id)
        else:
            parents = (choice.node,) if choice.other is None else (choice.node, choice.other)
            self._add(job.move.state, parents, job.move, choice.kind)

    def _add(self, state: State, parents: tuple[NodeId, ...], move: Move, kind: str) -> None:
        landscape, value = self._landscape, measured(self._landscape, state)
        outcomes = {t: Outcome.PASSED if passed else Outcome.FAILED for t, passed in landscape.tests(state).items()}
        node = Node(
            id=len(self.tree),
            parents=parents,
            steps=(Step((Write(move.file, ""),), ()),) if move.file else (),
            snapshot=Snapshot(digest(state), digest(state)),
            report=SuiteReport(outcomes, duration_s=move.cost),
            evaluation=Evaluation(value, solved=value == 1.0),
            prior=move.prior,
            terminal=value == 1.0,
            kind=kind,
        )
        self.states.append(state)
        self.tree.add(node)
        self._found = max(self._found, landscape.value(state))
