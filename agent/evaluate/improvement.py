"""Gates: from which measured states a search may go on."""

from __future__ import annotations

from collections.abc import Sequence

from agent.measure import Outcome, SuiteReport
from agent.run.tree.tree import Node

__all__ = ["improves_strictly"]


def improves_strictly(path: Sequence[Node], report: SuiteReport) -> bool:
    """Whether a test passes that did not, and none fails that passed (the rule of TraceCoder, arXiv 2602.06875: every
    iteration has to be a strict improvement).

    `path` leads to the state that was edited. A report need not say something of every test: each is compared with
    what the last state of the path that ran it said.
    """
    before: dict[str, Outcome] = {}
    for node in path:
        before |= node.report.outcomes
    passed = {test for test, outcome in before.items() if outcome is Outcome.PASSED}
    gained = before.keys() - passed & set(report.passes)
    return report.valid and bool(gained) and not passed & set(report.failures)
