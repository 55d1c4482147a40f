"""Cross tests: how the new tests of each candidate end with the patches of the others.

Invariant: a test counts only if it fails in the root state and passes both with its author's patch and with a patch
that changes the sources differently. A test that only its author's patch passes may share its author's mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.run.tree.node import ROOT, NodeId

Cell = Literal["passed", "failed", "invalid"]
"""The result of a test: it passed, its own checks failed, or it did not run far enough to tell."""


@dataclass(frozen=True, slots=True)
class Row:
    """The tests that candidates add, and how they ended in each state."""

    authors: tuple[NodeId, ...]
    """The candidates that add them, at least one: several if a line of work branched after it had written them."""
    cells: Mapping[NodeId, Mapping[str, Cell]]
    """The result of each test in each state; `ROOT` is the root state."""
    kin: frozenset[NodeId]
    """The authors, and the candidates that change the sources in the same way as one of them."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The tests that show something: they fail in the root state and pass with an author's patch."""
        root, own = self.cells[ROOT], self.cells[self.authors[0]]
        return tuple(test for test, cell in root.items() if cell == "failed" and own[test] == "passed")

    @property
    def agreed(self) -> tuple[str, ...]:
        """The tests that count (see the module's invariant)."""
        strangers = self.cells.keys() - self.kin - {ROOT}
        return tuple(test for test in self.shown if any(self.cells[other][test] == "passed" for other in strangers))

    def failed(self, node: NodeId) -> float:
        """Return the share, in [0, 1], of the counting tests that fail with a candidate's patch."""
        return sum(self.cells[node][test] == "failed" for test in self.agreed) / len(self.agreed)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The rows of all authors whose tests could be run everywhere."""

    rows: tuple[Row, ...] = ()

    def scores(self, nodes: Sequence[NodeId]) -> dict[NodeId, float]:
        """Return for each candidate the share, in [0, 1], of the counting tests that it does not fail. All authors have
        the same weight. If no test counts, all candidates have 1."""
        telling = [row for row in self.rows if row.agreed]
        return {node: 1.0 - sum(row.failed(node) for row in telling) / max(1, len(telling)) for node in nodes}


UNTESTED = Matrix()
"""No results: no candidate has tests, or they were not run."""
