"""Record: what a run keeps of a ranking, so that a resumed search goes on in it and a dataset can be made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.policy.edit.context import Context

if TYPE_CHECKING:
    from agent.run.run import Run
    from agent.run.tree.node import NodeId

__all__ = ["Entry", "Ranked", "key"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One edit in its place."""

    index: int
    """Its place among `mutate`'s proposals."""
    prior: float
    """In [0, 1]."""
    likely: float
    """How likely `mutate` found it, in (0, 1]."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The order in which a state's edits are tried, and the functions that they lie in."""

    order: Sequence[Entry]
    contexts: Sequence[Context]

    def likely(self, number: int) -> float:
        """How likely `mutate` found the edit that was tried as this one, from 0; the least where it was not ranked."""
        return self.order[number].likely if number < len(self.order) else 1e-6

    def to_json(self) -> dict[str, Any]:
        """Plain data, for a journal."""
        return {
            "order": [[each.index, each.prior, each.likely] for each in self.order],
            "contexts": [each.to_json() for each in self.contexts],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ranked:
        """What `to_json` gave."""
        return cls([Entry(*each) for each in data["order"]], [Context.from_json(each) for each in data["contexts"]])

    @classmethod
    def of(cls, run: Run, node: NodeId) -> Ranked | None:
        """What a run keeps of a node, in its first wave; None where nothing was ranked there."""
        noted = run.note(0, key(node))
        return None if noted is None else cls.from_json(noted)


def key(node: NodeId, wave: int = 0) -> str:
    """Under which a run keeps the ranking of a node, in a wave."""
    return f"edit/{node}" + (f"/{wave}" if wave else "")
