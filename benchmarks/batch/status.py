"""Standing: how an instance stands that is being worked on, wherever that is, for whoever watches a batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from agent.analysis.report.live import next_step
from agent.budget import Usage
from agent.run.events import Added, Asked, Event, Spent

__all__ = ["Standing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What its worker does now, and what it has come to."""

    doing: str = "preparing the repository"
    nodes: int = 0
    best: float = 0.0
    """The greatest value of a node, in [0, 1]."""
    usage: Usage = field(default_factory=Usage)

    def after(self, event: Event) -> Standing:
        """How it stands when this has been recorded, too."""
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
