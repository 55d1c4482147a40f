"""States by the tests that they repair."""

from __future__ import annotations

from bisect import insort

from agent.measure.regressions import regressions
from agent.run.tree.tree import NodeId, Tree

__all__ = ["Repairs", "Tests"]

Tests = frozenset[str]


class Repairs:
    """A view (`agent.run.tree.tree.View`) of what was repaired. Of the tests that fail in the base state and are not
    flaky, a state repairs those that pass in it; a state that breaks another test counts for nothing, and so does one
    that was pruned."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._tests: dict[NodeId, Tests] = {}
        self._alike: dict[Tests, list[tuple[float, NodeId]]] = {}
        self.most: list[Tests] = []
        """What states repair, without what is a part of what another repairs; in a fixed order."""

    def changed(self, node_id: NodeId) -> None:
        """Take in a new node, or leave out one that was pruned."""
        if node_id not in self._tests:
            self._tests[node_id] = self._repaired(node_id)
            if tests := self._tests[node_id]:
                insort(self._alike.setdefault(tests, []), self._rank(node_id))
                self._compare()
        elif self._tree.pruned(node_id) and (tests := self._tests[node_id]):
            self._tests[node_id] = frozenset()
            self._alike[tests].remove(self._rank(node_id))
            self._compare()

    def changed_below(self, node_id: NodeId) -> None:
        """Nothing here depends on it."""

    def nodes(self, tests: Tests) -> list[NodeId]:
        """The states that repair exactly these, the most valuable first, the older among equals."""
        return [node_id for _, node_id in self._alike.get(tests, ())]

    def _repaired(self, node_id: NodeId) -> Tests:
        base, report = self._tree.root.report, self._tree[node_id].report
        if self._tree.pruned(node_id):
            return frozenset()
        tests = frozenset(test for test in base.failures if test not in base.flaky and report.passed(test))
        return frozenset() if tests and regressions(base, report) else tests

    def _rank(self, node_id: NodeId) -> tuple[float, NodeId]:
        return -self._tree[node_id].value, node_id

    def _compare(self) -> None:
        known = [tests for tests, nodes in self._alike.items() if nodes]
        self.most = sorted((tests for tests in known if not any(tests < other for other in known)), key=sorted)
