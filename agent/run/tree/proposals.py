"""TranspositionIndex: which state each edit of a state led to, and how often it was proposed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.actions.canonical import canonical
from agent.run.tree.node import NodeId, Step

__all__ = ["TranspositionIndex", "proposal_of"]


def proposal_of(steps: Sequence[Step]) -> str:
    """What an expansion proposed, in canonical form; empty where that does not say what came of it: it took more turns
    than one, or ran a command."""
    return canonical(steps[0].actions) if len(steps) == 1 else ""


class TranspositionIndex:
    """A count over the facts of a tree (`agent.run.tree.tree.Tree`), which tells it of every expansion that led to a
    state."""

    def __init__(self) -> None:
        self._led_to: dict[tuple[NodeId, str], NodeId] = {}
        self._times: Counter[tuple[NodeId, NodeId]] = Counter()

    def led(self, parent: NodeId, child: NodeId, proposal: str) -> None:
        """An expansion of `parent` led to `child`; `proposal` is what it proposed in canonical form."""
        self._times[parent, child] += 1
        if proposal:
            self._led_to.setdefault((parent, proposal), child)

    def known(self, parent: NodeId, proposal: str) -> NodeId | None:
        """Where the same proposal led to from the same state, if it was made there before."""
        return self._led_to.get((parent, proposal)) if proposal else None

    def made_at(self, parent: NodeId) -> frozenset[str]:
        """What was proposed at a state and led somewhere, in canonical form."""
        return frozenset(proposal for above, proposal in self._led_to if above == parent)

    def times(self, parent: NodeId, child: NodeId) -> int:
        """How often what was proposed at `parent` led to `child`."""
        return self._times[parent, child]
