"""Live status of one instance, local or remote, for progress displays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agent.analysis.report.live import next_step
from agent.budget import Usage
from agent.run.events import Added, Asked, Event, Spent


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    """What an instance's worker is doing, and what it has achieved and spent so far."""

    doing: str = "preparing the repository"
    nodes: int = 0
    best: float = 0.0
    """The highest value of a node, in [0, 1]."""
    usage: Usage = field(default_factory=Usage)

    def after(self, event: Event) -> InstanceStatus:
        """The status once this event has been recorded."""
        after = replace(self, doing=next_step(event))
        match event:
            case Added():
                return replace(after, nodes=self.nodes + 1, best=max(self.best, event.node.value))
            case Asked():
                return replace(after, usage=self.usage + event.answer.usage)
            case Spent():
                return replace(after, usage=self.usage + event.usage)
            case _:
                return after
