"""Record: a ranking as a run keeps it, so that a resumed search continues with it and a dataset can be made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.policy.edit.context import Context

if TYPE_CHECKING:
    from agent.run.run import Run
    from agent.run.tree.node import NodeId


@dataclass(frozen=True, slots=True)
class Entry:
    """One ranked edit."""

    index: int
    """Its place among `mutate`'s proposals."""
    prior: float
    """In [0, 1]."""
    likelihood: float
    """The likelihood that `mutate` gave it, in (0, 1]."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The order in which a state's edits are tried, and the functions that they edit."""

    order: Sequence[Entry]
    contexts: Sequence[Context]

    def likelihood(self, number: int) -> float:
        """The likelihood that `mutate` gave to attempt `number` (from 0); the least one if it was not ranked."""
        return self.order[number].likelihood if number < len(self.order) else 1e-6

    def to_json(self) -> dict[str, Any]:
        """The ranking as plain data, for a journal."""
        return {
            "order": [[entry.index, entry.prior, entry.likelihood] for entry in self.order],
            "contexts": [context.to_json() for context in self.contexts],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ranked:
        """The inverse of `to_json`."""
        return cls([Entry(*entry) for entry in data["order"]], [Context.from_json(item) for item in data["contexts"]])

    @classmethod
    def of(cls, run: Run, node: NodeId) -> Ranked | None:
        """The ranking that a run recorded for a node in the first round; None if there is none."""
        note = run.note(0, key(node))
        return None if note is None else cls.from_json(note)


def key(node: NodeId, earlier: int = 0) -> str:
    """The key under which a run records the ranking of a node, given the number of proposals from earlier rounds."""
    return f"edit/{node}" + (f"/{earlier}" if earlier else "")
