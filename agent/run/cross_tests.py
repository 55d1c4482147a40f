"""Cross tests: how the new tests of each candidate end with the patches of the others.

Invariant: a test counts if it fails in the root state and passes with its author's patch and with one that changes the
sources differently: a test that only its author passes may share its author's mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.run.tree.node import ROOT, NodeId

Cell = Literal["passed", "failed", "invalid"]
"""How a test ended: it passed, it failed in what it tests, or it did not get that far."""


@dataclass(frozen=True, slots=True)
class Row:
    """The tests that candidates add, and how they ended in each state."""

    authors: tuple[NodeId, ...]
    """The candidates that add them, at least one: several if a line of work branched after it had written them."""
    cells: Mapping[NodeId, Mapping[str, Cell]]
    """The result of each test in each state; `ROOT` is the root state."""
    kin: frozenset[NodeId]
    """The authors, and the candidates that change the sources as one of them does."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The tests that show something: they fail in the root state and pass with an author's patch."""
        root, own = self.cells[ROOT], self.cells[self.authors[0]]
        return tuple(test for test, cell in root.items() if cell == "failed" and own[test] == "passed")

    @property
    def agreed(self) -> tuple[str, ...]:
        """The tests that count."""
        strangers = self.cells.keys() - self.kin - {ROOT}
        return tuple(test for test in self.shown if any(self.cells[other][test] == "passed" for other in strangers))

    def failed(self, node: NodeId) -> float:
        """The share of the tests that count which fail with a candidate's patch, in [0, 1]."""
        return sum(self.cells[node][test] == "failed" for test in self.agreed) / len(self.agreed)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The rows of all authors whose tests could be run everywhere."""

    rows: tuple[Row, ...] = ()

    def scores(self, nodes: Sequence[NodeId]) -> dict[NodeId, float]:
        """The share of the tests that count which each candidate does not fail, in [0, 1]. All authors weigh the same.
        1 for all candidates if no test counts."""
        telling = [row for row in self.rows if row.agreed]
        return {node: 1.0 - sum(row.failed(node) for row in telling) / max(1, len(telling)) for node in nodes}


UNTESTED = Matrix()
"""No results: no candidate has tests, or they were not run."""
