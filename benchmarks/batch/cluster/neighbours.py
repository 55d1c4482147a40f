"""Keeps instances of one environment on the machines that have its images, which share layers.

Ray decides which machine has room; which of the waiting instances takes that room is decided here.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.data.instances import Instance

__all__ = ["Neighbours"]


@dataclass(slots=True)
class Neighbours:
    """Chooses the next instance. Used by one thread."""

    environment: Callable[[Instance], str]
    """As `benchmarks.batch.grouping.environment_of`."""
    machine: Callable[[str], str]
    """The machine of the last attempt at an instance; empty: none yet."""
    _begun: set[str] = field(default_factory=set)
    _machines: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _near: dict[str, str] = field(default_factory=dict)

    def take(self, waiting: deque[Instance], ended: Instance | None) -> Instance:
        """The next of those that wait, which is taken out: of an environment that is on the machine where `ended` was,
        else of one that is nowhere yet, else the first. Without images it is the first."""
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
        there = (each for each in waiting if machine and machine in self._machines[self.environment(each)])
        nowhere = (each for each in waiting if self.environment(each) not in self._begun)
        return next(there, None) or next(nowhere, None) or waiting[0]

    def near(self, instance: Instance) -> str:
        """The machine on which an instance is best solved; empty: any."""
        return self._near.get(instance.id, "")
