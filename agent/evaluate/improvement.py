"""The gate that decides from which measured states a search may continue."""

from __future__ import annotations

from collections.abc import Sequence

from agent.measure import Outcome, SuiteReport
from agent.run.tree.node import Node


def improves_strictly(path: Sequence[Node], report: SuiteReport) -> bool:
    """Whether a test passes that did not pass before, and no test fails that passed before (the rule of TraceCoder,
    arXiv 2602.06875: every iteration has to be a strict improvement).

    `path` leads to the state that was edited. A report need not cover every test: each result is compared with that of
    the last state on the path that ran the test.
    """
    before: dict[str, Outcome] = {}
    for node in path:
        before |= node.report.outcomes
    passed = {test for test, outcome in before.items() if outcome is Outcome.PASSED}
    gained = before.keys() - passed & set(report.passes)
    return report.valid and bool(gained) and not passed & set(report.failures)
