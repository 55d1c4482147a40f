"""Subtrees: what a tree counts of each node and all below it, brought up to date when it is asked for.

A change is noted at the node where it happens and carried up when somebody asks, all changes together, each node once:
a node's id is higher than those of all nodes above it. So a chain of n nodes is taken in by n steps.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from threading import Lock
from typing import NamedTuple

from agent.node import NodeId

__all__ = ["Subtrees"]

UNIT = 1 << 80
"""One, where values are summed as whole numbers: a sum is the same in whatever order it is made. A value of 2 ** -27 or
more is a whole number of units, a smaller one is cut off."""


class _Change(NamedTuple):
    """Of the counts of a node, and so of those of all above it."""

    visits: int = 0
    value: int = 0
    """In units."""
    highest: float = 0.0
    pending: int = 0
    open: int = 0

    def and_also(self, other: _Change) -> _Change:
        """Both."""
        visits, value, highest, pending, open_ = other
        return _Change(
            self.visits + visits,
            self.value + value,
            max(self.highest, highest),
            self.pending + pending,
            self.open + open_,
        )


class Subtrees:
    """The counts of nodes that are numbered from 0, parents before their children. Thread-safe: to ask is to change."""

    def __init__(self) -> None:
        self._above: list[NodeId | None] = []
        self._visits: list[int] = []
        self._values: list[int] = []
        self._highest: list[float] = []
        self._pending: list[int] = []
        self._open: list[int] = []
        self._noted: dict[NodeId, _Change] = {}
        """What is not in a node's counts yet, nor in those of any node above it."""
        self._lock = Lock()

    def add(self, above: NodeId | None, value: float, is_open: bool) -> None:
        """The next node, a child of `above`."""
        with self._lock:
            self._above.append(above)
            self._highest.append(value)
            for counts in (self._visits, self._values, self._pending, self._open):
                counts.append(0)
            self._note(len(self._above) - 1, _Change(1, int(value * UNIT), value, 0, int(is_open)))

    def fly(self, node_id: NodeId, change: int) -> None:
        """So much more work is in flight at the node."""
        with self._lock:
            self._note(node_id, _Change(pending=change))

    def close(self, node_id: NodeId) -> None:
        """An open node is open no longer."""
        with self._lock:
            self._note(node_id, _Change(open=-1))

    def close_all(self, below: list[NodeId]) -> None:
        """Nothing is open any more in the subtree that these nodes are, the topmost first."""
        lost = self.open(below[0])
        with self._lock:
            for node_id in below:
                self._open[node_id] = 0
            if (above := self._above[below[0]]) is not None:
                self._note(above, _Change(open=-lost))

    def visits(self, node_id: NodeId) -> int:
        """Nodes."""
        if self._noted:
            self._carry_up()
        return self._visits[node_id]

    def value_sum(self, node_id: NodeId) -> float:
        """Of all values, rounded once."""
        if self._noted:
            self._carry_up()
        return self._values[node_id] / UNIT

    def value_max(self, node_id: NodeId) -> float:
        """The highest value."""
        if self._noted:
            self._carry_up()
        return self._highest[node_id]

    def pending(self, node_id: NodeId) -> int:
        """Work in flight."""
        if self._noted:
            self._carry_up()
        return self._pending[node_id]

    def open(self, node_id: NodeId) -> int:
        """Open nodes."""
        if self._noted:
            self._carry_up()
        return self._open[node_id]

    def _note(self, node_id: NodeId, change: _Change) -> None:
        noted = self._noted.get(node_id)
        self._noted[node_id] = change if noted is None else noted.and_also(change)

    def _carry_up(self) -> None:
        """Nothing is taken off the notes before all is done: whoever sees none sees counts that are up to date."""
        with self._lock:
            changes = dict(self._noted)
            waiting = [-node_id for node_id in changes]
            heapify(waiting)
            while waiting:
                node_id = -heappop(waiting)
                change = changes[node_id]
                above = self._apply_upwards(node_id, change, -waiting[0] if waiting else -1)
                if above is None:
                    continue
                if above not in changes:
                    heappush(waiting, -above)
                    changes[above] = change
                else:
                    changes[above] = changes[above].and_also(change)
            self._noted = {}

    def _apply_upwards(self, node_id: NodeId, change: _Change, until: NodeId) -> NodeId | None:
        """Count it at the node and at those above, down to the first whose id is not above `until`, which is the next
        node that waits for something; returns that one."""
        visits, value, highest, pending, open_ = change
        above = self._above
        each: NodeId | None = node_id
        while each is not None and each > until:
            self._visits[each] += visits
            self._values[each] += value
            if highest > self._highest[each]:
                self._highest[each] = highest
            self._pending[each] += pending
            self._open[each] += open_
            each = above[each]
        return each
