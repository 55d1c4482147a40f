"""Sends instances to machines that already have their environment, since the images of one environment share layers.

Ray decides which machine has room; this module chooses which of the waiting instances takes that room.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.data.instances import Instance


@dataclass(slots=True)
class Neighbours:
    """Chooses the next instance. Used by one thread."""

    environment: Callable[[Instance], str]
    """As `benchmarks.batch.grouping.environment_of`."""
    machine: Callable[[str], str]
    """The machine of the last attempt at the instance with this id; empty before the first."""
    _begun: set[str] = field(default_factory=set)
    _machines: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _near: dict[str, str] = field(default_factory=dict)

    def take(self, waiting: deque[Instance], ended: Instance | None) -> Instance:
        """Remove and return the next of the waiting instances: one whose environment is on the machine that `ended` ran
        on, else one whose environment is on no machine yet, else the first. Without images it is always the first."""
        machine = self.machine(ended.id) if ended is not None else ""
        if ended is not None and machine:
            self._machines[self.environment(ended)].add(machine)
        chosen = self._chosen(waiting, machine)
        self._begun.add(self.environment(chosen))
        if self.environment(chosen):
            self._near[chosen.id] = machine
        waiting.remove(chosen)
        return chosen

    def _chosen(self, waiting: deque[Instance], machine: str) -> Instance:
        if not self.environment(waiting[0]):
            return waiting[0]
        present = (i for i in waiting if machine and machine in self._machines[self.environment(i)])
        unbegun = (i for i in waiting if self.environment(i) not in self._begun)
        return next(present, None) or next(unbegun, None) or waiting[0]

    def near(self, instance: Instance) -> str:
        """The preferred machine for an instance; empty: any."""
        return self._near.get(instance.id, "")
