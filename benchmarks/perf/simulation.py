"""Runs a search on a landscape, with a real tree and simulated workers, without a sandbox.

Choices are carried out in the same order as by the engine: begin, propose, measure, record, merge known states, close
exhausted nodes. A run ends when an optimum is measured, the search selects nothing, or the budget is spent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from agent.actions import Write
from agent.measure import Outcome, SuiteReport
from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Act, Node, NodeId, Step
from agent.run.tree.tree import Tree
from agent.search import Search
from benchmarks.perf.landscape import Curve, Landscape, Move, State, digest, measured
from sandboxes import Snapshot

EXHAUSTED_COST = 1.0
"""The cost of expanding a node without further proposals: that of a proposal."""
CONFLICT_COST = 0.1
"""The cost of a merge that conflicts, which needs no policy and no test run."""
MEASURE_COST = 1.0
"""The cost of measuring a state again: that of proposing and measuring a new one, which is high for a measurement."""


@dataclass(frozen=True, slots=True, order=True)
class _Job:
    """Work in flight, ordered by its end, then by its beginning."""

    ends: float
    number: int
    choice: Choice = field(compare=False)
    move: Move | None = field(compare=False)
    """The state that it leads to; None if nothing is proposed, a merge conflicts, or a state is measured again."""
    cost: float = field(compare=False)


class Simulation:
    """One run of one search on one landscape. Workers are simulated: an expansion takes as long as it costs."""

    def __init__(self, landscape: Landscape, search: Search, budget: float, *, workers: int = 1, seed: int = 0) -> None:
        self.tree = Tree()
        self.states: list[State] = []
        """The state of every node."""
        self.curve = Curve()
        self.merged = 0
        """The number of expansions that led to a known state."""
        self._landscape = landscape
        self._search = search
        self._left = budget
        self._workers = workers
        self._seed = seed
        self._now = 0.0
        self._jobs: list[_Job] = []
        self._jobs_begun = 0
        self._add(landscape.start, (), Move(landscape.start, cost=0.0), "")
        self._note(0.0)

    def run(self) -> Curve:
        """Run to the end. Returns what was found."""
        while self.step():
            pass
        return self.curve

    def step(self) -> bool:
        """Continue until some work ends; False if there is no work."""
        if self.tree.solved or not self._fill():
            return False
        job = heappop(self._jobs)
        self._now = job.ends
        self.tree.end(*_work(job.choice))
        self._conclude(job)
        self._note(job.cost)
        return True

    def _note(self, cost: float) -> None:
        answer = self._landscape.value(self.states[self.tree.best().id])
        self.curve.spend(cost, answer)

    def _fill(self) -> bool:
        """Give every idle worker something to do. Returns whether any work is in flight."""
        while len(self._jobs) < self._workers:
            number = self.tree.ended_expansions + self.tree.in_flight
            choice = self._search.select(self.tree, Random(f"{self._seed}/select/{number}"))
            if choice is None:
                break
            job = self._begun(choice)
            if job.cost > self._left:
                self._left = 0.0
                break
            self._left -= job.cost
            self.tree.begin(*_work(choice))
            heappush(self._jobs, job)
        return bool(self._jobs)

    def _begun(self, choice: Choice) -> _Job:
        state, move, cost = self.states[choice.node], None, MEASURE_COST
        if choice.act == "expand":
            move, cost = self._landscape.move(state, self.tree.begun(choice.node)), EXHAUSTED_COST
        elif choice.act == "fuse":
            assert choice.other is not None
            both, cost = self._landscape.fused(state, self.states[choice.other]), CONFLICT_COST
            move = Move(both) if both is not None else None
        cost = move.cost if move else cost
        self._jobs_begun += 1
        return _Job(self._now + cost, self._jobs_begun, choice, move, cost)

    def _conclude(self, job: _Job) -> None:
        choice, tree = job.choice, self.tree
        if choice.act == "measure":
            again = measured(self._landscape, self.states[choice.node], len(tree.evaluations(choice.node)))
            tree.measure_again(choice.node, Evaluation(again))
        elif job.move is not None:
            self._record_outcome(choice, job.move)
        elif choice.act == "fuse":
            tree.fail(choice.node, "the branches conflict", *_work(choice)[1:])
        else:
            tree.close(choice.node)

    def _record_outcome(self, choice: Choice, move: Move) -> None:
        known = self.tree.with_state(digest(move.state))
        if known is not None and known.id != choice.node:
            self.merged += 1
            self.tree.merge(choice.node, known.id, "", *_work(choice)[1:])
        else:
            parents = (choice.node,) if choice.other is None else (choice.node, choice.other)
            self._add(move.state, parents, move, "fuse" if choice.act == "fuse" else choice.kind)

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


def _work(choice: Choice) -> tuple[NodeId, Act, NodeId | None, str]:
    """The choice as arguments for the tree. There is only one policy."""
    return choice.node, choice.act, choice.other, ""
