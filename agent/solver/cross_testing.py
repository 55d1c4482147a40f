"""Cross-checking: the tests that one candidate's patch adds are run with the patches of the others. No model is asked.

Invariant: the results are shown to judges and break ties between candidates that the task's tests leave equal
(`agent.solver.tournament.ranking`). They never make a state count as solved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from agent.budget import BudgetSpent, Stop, Usage
from agent.engine.session import Session
from agent.evaluate.own_tests import OwnTests
from agent.measure.diffs import parse
from agent.run.cross_tests import Cell, Matrix, Row
from agent.run.events import Noted, Spent
from agent.run.rollouts import Candidate
from agent.run.tree.node import ROOT, NodeId

FILES = 5
"""The maximum number of test files that are run for one candidate."""


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """Runs the new tests of each candidate on the other candidates, in scratch forks. Results of earlier sessions are
    read from the journal."""

    session: Session
    own: OwnTests

    def matrix(self, authors: Sequence[Candidate], nodes: Sequence[NodeId]) -> Matrix:
        """Return the results of each author's tests in these nodes, as far as the budget allows. An author whose tests
        could not be run in all of them counts as having none.

        Raises:
            agent.budget.BudgetSpent: the run is cancelled or out of time, so the results are incomplete.
        """
        return Matrix(tuple(self._rows(authors, nodes)) if self.own.can_run else ())

    def _rows(self, authors: Sequence[Candidate], nodes: Sequence[NodeId]) -> Iterator[Row]:
        """Yield a row for each set of tests that show something and could be run in all nodes. Candidates that share
        their tests, because a line of work branched after writing them, count as one author."""
        alike = _alike(authors)
        sharing: defaultdict[tuple[tuple[str, bytes], ...], list[Candidate]] = defaultdict(list)
        for candidate in authors:
            sharing[tuple(self._tests(candidate).items())].append(candidate)
        for tests, sharers in sharing.items():
            try:
                cells = self._cells(dict(tests), sharers[0].node, nodes) if tests else None
            except BudgetSpent:
                if self.session.cancel.is_set() or self.session.components.budget.left_s <= 0:
                    raise
                continue  # the tests of a later author may be known
            if cells is not None:
                kin = frozenset().union(*(alike[sharer.program] for sharer in sharers))
                yield Row(tuple(sharer.node for sharer in sharers), cells, kin)

    def _tests(self, candidate: Candidate) -> dict[str, bytes]:
        """Return the test files that the candidate's patch adds or changes and that are run with other patches."""
        snapshot = self.session.run.tree[candidate.node].snapshot
        patched = {change.path for change in parse(candidate.patch)}
        paths = [path for path in self.own.files(snapshot) if path in patched]
        files = self.own.contents(snapshot, paths) if paths else {}
        return dict(list(files.items())[:FILES])

    def _cells(
        self, tests: Mapping[str, bytes], author: NodeId, nodes: Sequence[NodeId]
    ) -> dict[NodeId, Mapping[str, Cell]] | None:
        """Return the results in all states, or None if no test shows anything. A test shows something if it passes with
        the author's own patch and fails in the root state.

        Raises:
            agent.budget.BudgetSpent: the tests cannot be run in all states, or the session has to end.
        """
        own = self._ends(tests, author)
        names = [name for name, end in own.items() if end == "passed"]
        if not names:
            return None
        cells = {author: own, ROOT: self._ends(tests, ROOT, names)}
        if "failed" not in cells[ROOT].values():
            return None
        return cells | {node: self._ends(tests, node, names) for node in nodes if node != author}

    def _ends(self, tests: Mapping[str, bytes], node: NodeId, names: Sequence[str] = ()) -> Mapping[str, Cell]:
        """Return the results of these tests of the files in one state, or of all their tests if none is named. They are
        run once and noted."""
        run, budget = self.session.run, self.session.components.budget
        key = f"crosstests/{sha256(repr([sorted(tests.items()), *names]).encode()).hexdigest()[:32]}"
        known: Any = run.note(node, key)
        if known is None:
            if self.session.cancel.is_set():
                raise BudgetSpent(Stop.INTERRUPTED)
            with budget.reserve(Usage(measurements=1)):
                report = self.own.on(run.tree[node].snapshot, tests)
                found = names or self.own.added(report, tests)
                known = {name: self.own.reader.end(report, name) for name in found}
                self.session.record(Spent(Usage(measurements=1), "crosscheck", node))
            self.session.record(Noted(node, key, known))
        ends: Mapping[str, Cell] = known
        return ends


def _alike(candidates: Sequence[Candidate]) -> dict[bytes, frozenset[NodeId]]:
    """Return the candidates grouped by the program that they lead to."""
    alike: defaultdict[bytes, set[NodeId]] = defaultdict(set)
    for candidate in candidates:
        alike[candidate.program].add(candidate.node)
    return {program: frozenset(nodes) for program, nodes in alike.items()}
