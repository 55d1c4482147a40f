"""What is noted at nodes, put together over subtrees when somebody asks.

A note is carried up to the next station (`agent.run.tree.ancestry`) node by node, and from there on from station to
station. The nodes between two stations are given what they lack when one of them is asked for. So a change in a deep
tree costs few steps, and where there is one station, a change costs a step for each node above it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from threading import RLock
from typing import Generic, TypeVar

from agent.run.tree.ancestry import Ancestry
from agent.run.tree.node import NodeId

__all__ = ["SubtreeAggregate"]

_C = TypeVar("_C")
_Owed = dict[NodeId, dict[NodeId, _C]]
"""By station: what came to the stations next below it and is not counted at the nodes between yet."""


class SubtreeAggregate(Generic[_C]):
    """Of each node, all that was noted in its subtree. Thread-safe: to ask is to change.

    `both` puts two notes together; neither order nor grouping may matter to it, and `nothing` changes no other note.

    Law: a signal between any two lines loses nothing and counts nothing twice. What is to become of the totals is
    worked out first, as totals and not as differences, kept, and then put in place, which may be done any number of
    times.
    """

    def __init__(self, lineage: Ancestry, nothing: _C, both: Callable[[_C, _C], _C]) -> None:
        self._lineage = lineage
        self._nothing = nothing
        self._both = both
        self._totals: dict[NodeId, _C] = {}
        self._owed: _Owed[_C] = {}
        self._noted: dict[NodeId, _C] = {}
        """What is not in a node's total yet, nor in that of any node above it."""
        self._ready: tuple[dict[NodeId, _C], _Owed[_C]] | None = None
        """Totals, and what is owed, that hold all notes and are not in place."""
        self._lock = RLock()

    def note(self, node_id: NodeId, change: _C) -> None:
        """At the node, and so in the totals of all above it."""
        with self._lock:
            if self._ready is not None:
                self._put_in_place()
            noted = self._noted.get(node_id)
            self._noted[node_id] = change if noted is None else self._both(noted, change)

    def __getitem__(self, node_id: NodeId) -> _C:
        if self._noted or self._ready:
            self._carry_up()
        station = self._lineage.station(node_id)
        if node_id != station and self._owed.get(station):
            self._pay(station)
        return self._totals.get(node_id, self._nothing)

    def _carry_up(self) -> None:
        with self._lock:
            self._put_in_place()
            if self._noted:
                self._ready = self._carried_up()
                self._put_in_place()

    def _pay(self, station: NodeId) -> None:
        with self._lock:
            self._carry_up()
            self._ready = self._paid(station), {station: {}}
            self._put_in_place()

    def _put_in_place(self) -> None:
        if self._ready is None:
            return
        totals, owed = self._ready
        self._totals.update(totals)
        for station, notes in owed.items():
            if notes:
                self._owed.setdefault(station, {}).update(notes)
            else:
                self._owed[station] = {}
        self._noted = {}
        self._ready = None

    def _carried_up(self) -> tuple[dict[NodeId, _C], _Owed[_C]]:
        """The highest id first, which is above the ids of all nodes above it: so each node is passed once."""
        noted, totals, owed = dict(self._noted), dict[NodeId, _C](), _Owed[_C]()
        waiting = [-node_id for node_id in noted]
        heapify(waiting)
        while waiting:
            node_id = -heappop(waiting)
            change = noted.pop(node_id)
            if change == self._nothing:
                continue
            end = self._carry_to(-waiting[0] if waiting else -1, node_id, change, totals, owed)
            if end is not None and end in noted:
                noted[end] = self._both(noted[end], change)
            elif end is not None:
                noted[end] = change
                heappush(waiting, -end)
        return totals, owed

    def _carry_to(
        self, until: NodeId, node_id: NodeId, change: _C, totals: dict[NodeId, _C], owed: _Owed[_C]
    ) -> NodeId | None:
        """Count it at the node and on the way up from it, down to the first id that is not above `until`, which is the
        next node that waits for something; returns that one, None above the root."""
        above, station_of, both, counted = self._lineage.above, self._lineage.station, self._both, self._totals
        each: NodeId | None = node_id
        while each is not None and each > until:
            totals[each] = both(counted.get(each, self._nothing), change)
            station = station_of(each)
            if each != station:
                each = above(each)
            elif (each := self._lineage.next_station(station)) is not None:
                before = self._owed.get(each, {}).get(station, self._nothing)
                owed.setdefault(each, {})[station] = both(before, change)
        return each

    def _paid(self, station: NodeId) -> dict[NodeId, _C]:
        """The totals of the nodes between a station and those next below it."""
        totals = dict[NodeId, _C]()
        for below, change in self._owed.get(station, {}).items():
            for each in self._lineage.between(below):
                total = totals.get(each)
                totals[each] = self._both(self._totals.get(each, self._nothing) if total is None else total, change)
        return totals
