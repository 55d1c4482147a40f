"""Cross-checking: the tests that one candidate's patch adds are run with the patches of the others. No model is asked.

Law: a test counts if it fails in the root state and passes with its author's patch and with one that changes the
sources differently: a test that only its author passes may share its author's mistake. Cross-checks break ties between
candidates that the task's tests leave equal, where there is no vote or votes are tied
(`agent.solver.tournament.ranking`). They never make a state count as solved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from agent.budget import BudgetSpent, Stop, Usage
from agent.engine.session import Session
from agent.evaluate.reproduction import OwnTests, begun
from agent.measure import Outcome, SuiteReport
from agent.measure.diffs import parse
from agent.measure.ids import file_of
from agent.run.events import Noted, Spent
from agent.run.rollouts import Candidate
from agent.run.tree.node import ROOT, NodeId

__all__ = ["Cell", "CrossCheck", "Row", "scores"]

Cell = Literal["passed", "failed", "invalid"]
"""How a test file ended: all of its tests passed; one failed in what it tests; or it did not get that far."""
FILES = 5
"""How many test files of one candidate are run at most."""


@dataclass(frozen=True, slots=True)
class Row:
    """The test files that one candidate adds, and how they ended in each state."""

    author: NodeId
    cells: Mapping[NodeId, Mapping[str, Cell]]
    """The result in each state; `ROOT` is the root state."""
    kin: frozenset[NodeId]
    """The author, and the candidates that change the sources in the same way."""

    def agreed(self) -> tuple[str, ...]:
        """The test files that count."""
        strangers = self.cells.keys() - self.kin - {ROOT}
        shown = [path for path, cell in self.cells[ROOT].items() if cell == "failed"]
        own = [path for path in shown if self.cells[self.author][path] == "passed"]
        return tuple(path for path in own if any(self.cells[other][path] == "passed" for other in strangers))

    def failed(self, node: NodeId) -> float:
        """The share of the counted files that fail with a candidate's patch, in [0, 1]."""
        agreed = self.agreed()
        return sum(self.cells[node][path] == "failed" for path in agreed) / len(agreed)


def scores(rows: Iterable[Row], nodes: Sequence[NodeId]) -> dict[NodeId, float]:
    """The share of the counted tests that each candidate does not fail, in [0, 1]. All authors weigh the same. 1 for
    all candidates if no test counts."""
    telling = [row for row in rows if row.agreed()]
    return {node: 1.0 - sum(row.failed(node) for row in telling) / max(1, len(telling)) for node in nodes}


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """Runs the new tests of each candidate on the other candidates, in scratch forks. Results of earlier sessions are
    read from the journal."""

    session: Session
    own: OwnTests

    def scores(self, candidates: Sequence[Candidate]) -> dict[NodeId, float]:
        """As `scores`, as far as the budget allows. An author whose tests could not be run everywhere counts as having
        none.

        Raises:
            agent.budget.BudgetSpent: the run is cancelled or out of time, so the scores are incomplete.
        """
        nodes = [candidate.node for candidate in candidates]
        can_run = self.session.run.tree.root.report.adapter == "pytest"
        return scores(self._rows(candidates, nodes) if can_run else (), nodes)

    def _rows(self, candidates: Sequence[Candidate], nodes: Sequence[NodeId]) -> Iterator[Row]:
        """A row for each author whose tests show something and could be run everywhere."""
        changed = {candidate.node: self._changed(candidate) for candidate in candidates}
        kin = _kin({node: sources for node, (_, sources) in changed.items()})
        for author, (paths, _) in changed.items():
            tests = self._tests(author, paths) if paths else {}
            try:
                cells = self._cells(tests, author, nodes) if tests else None
            except BudgetSpent:
                if self._over():
                    raise
                continue  # the tests of a later author may be known
            if cells is not None:
                yield Row(author, cells, kin[author])

    def _changed(self, candidate: Candidate) -> tuple[list[str], str]:
        """The test files that the candidate's patch adds, and its other changes as text."""
        own = self.own.files(self.session.run.tree[candidate.node].snapshot)
        changes = parse(candidate.patch)
        added = {change.path for change in changes}
        return [path for path in own if path in added], repr([change for change in changes if change.path not in own])

    def _over(self) -> bool:
        """Whether the session is to end."""
        return self.session.cancel.is_set() or self.session.components.budget.left_s <= 0

    def _tests(self, author: NodeId, paths: Sequence[str]) -> dict[str, bytes]:
        """The candidate's test files that are run with other patches."""
        files = self.own.contents(self.session.run.tree[author].snapshot, paths)
        return dict(list(files.items())[:FILES])

    def _cells(
        self, tests: Mapping[str, bytes], author: NodeId, nodes: Sequence[NodeId]
    ) -> dict[NodeId, Mapping[str, Cell]] | None:
        """The results in all states; None if none of the tests shows anything about the author's own patch.

        Raises:
            agent.budget.BudgetSpent: the tests cannot be run in all states, or the session has to end.
        """
        cells = {ROOT: self._cell(tests, ROOT)}
        if "failed" not in cells[ROOT].values():
            return None
        cells[author] = self._cell(tests, author)
        if "passed" not in cells[author].values():
            return None
        return cells | {node: self._cell(tests, node) for node in nodes if node != author}

    def _cell(self, tests: Mapping[str, bytes], node: NodeId) -> Mapping[str, Cell]:
        """The result in one state, found once and noted."""
        run, budget = self.session.run, self.session.components.budget
        key = f"crosscheck/{sha256(repr(sorted(tests.items())).encode()).hexdigest()[:32]}"
        known: Any = run.note(node, key)
        if known is None:
            if self.session.cancel.is_set():
                raise BudgetSpent(Stop.INTERRUPTED)
            with budget.reserve(Usage(measurements=1)):
                known = _ends(tests, self.own.on(run.tree[node].snapshot, tests))
                self.session.record(Spent(Usage(measurements=1), "crosscheck", node))
            self.session.record(Noted(node, key, known))
        cells: Mapping[str, Cell] = known
        return cells


def _kin(sources: Mapping[NodeId, str]) -> dict[NodeId, frozenset[NodeId]]:
    """For each candidate, the candidates with the same change of the sources."""
    alike: defaultdict[str, set[NodeId]] = defaultdict(set)
    for node, change in sources.items():
        alike[change].add(node)
    return {node: frozenset(nodes) for nodes in alike.values() for node in nodes}


def _ends(tests: Mapping[str, bytes], report: SuiteReport) -> dict[str, Cell]:
    return {path: _end(path, report) for path in tests}


def _end(path: str, report: SuiteReport) -> Cell:
    """How one file ended. A failed import or an unknown name in the test itself says nothing about the state."""
    outcome = report.outcome(path) if report.valid else None
    if outcome is Outcome.PASSED:
        return "passed"
    failures = [test for test in report.failures if file_of(test) == path]
    failed = outcome in (Outcome.FAILED, Outcome.TIMEOUT) and all(begun(report, test) for test in failures)
    return "failed" if failed else "invalid"
