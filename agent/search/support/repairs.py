"""An index of states by the tests that they repair."""

from __future__ import annotations

from bisect import insort

from agent.measure.regressions import regressions
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View

Tests = frozenset[str]


class Repairs(View):
    """A view (`agent.run.tree.tree.View`): which state repairs which tests. A state repairs a test that fails in the
    base state, is not flaky, and passes in the state. A state that breaks another test, or was pruned, repairs
    nothing."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._tests: dict[NodeId, Tests] = {}
        self._alike: dict[Tests, list[tuple[float, NodeId]]] = {}
        self.most: list[Tests] = []
        """The maximal sets of tests that states repair, in a fixed order."""

    def changed(self, node_id: NodeId) -> None:
        """Add a new node, or remove a pruned one."""
        if node_id not in self._tests:
            self._tests[node_id] = self._repaired(node_id)
            if tests := self._tests[node_id]:
                insort(self._alike.setdefault(tests, []), self._rank(node_id))
                self._compare()
        elif self._tree.pruned(node_id) and (tests := self._tests[node_id]):
            self._tests[node_id] = frozenset()
            self._alike[tests].remove(self._rank(node_id))
            self._compare()

    def nodes(self, tests: Tests) -> list[NodeId]:
        """The states that repair exactly these tests, the most valuable first, among equals the older."""
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
        repaired = [tests for tests, nodes in self._alike.items() if nodes]
        self.most = sorted((tests for tests in repaired if not any(tests < other for other in repaired)), key=sorted)
