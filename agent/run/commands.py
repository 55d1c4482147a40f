"""Orders that people, or a later round (`agent.solver.refine.local`), give a search. Search algorithms do not know
about them.

Invariants: an order is an event like any other, so that a resumed search follows it as the first session would have; a
pruned node is never expanded again; an order does not affect work in flight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent.errors import UsageError
from agent.run.tree.choice import Choice
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree

HINT_BYTES = 10_000
"""The maximum size of a hint, in bytes."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order, given by a person or by a diagnosis."""

    act: Literal["fork", "prune", "pin", "unpin"]
    """`fork`: expand the node next, once. `prune`: stop expanding the node and its descendants. `pin`: expand only the
    node and its descendants, while any of them can be expanded. `unpin`: remove a pin."""
    node: NodeId
    hint: str = ""
    """For `fork`: what the policy should try. It belongs to that one expansion."""
    by: Literal["person", "diagnosis"] = "person"
    """`diagnosis`: a later round gives the order, to continue from a state of an earlier one."""


class Steering:
    """The orders of a run that are still in force. Only `agent.run.run.Run` changes it."""

    def __init__(self) -> None:
        self.forks: dict[int, Order] = {}
        """Fork orders whose expansion has not ended, by the number of the order, oldest first."""
        self.pins: list[NodeId] = []
        """Pinned nodes; the last one with an expandable node is in force."""
        self.inbox_bytes = 0
        """How many bytes of the queue file have been read."""
        self._given = 0

    def give(self, order: Order, tree: Tree, inbox_bytes: int) -> None:
        """Apply a recorded order. An order that no longer applies changes nothing."""
        if order.act == "fork":
            self.forks[self._given] = order
        elif order.act == "prune":
            tree.prune(order.node)
        else:
            self.pins = [pin for pin in self.pins if pin != order.node]
            self.pins += [order.node] if order.act == "pin" else []
        self._given += 1
        self.inbox_bytes = max(self.inbox_bytes, inbox_bytes)

    def use(self, choice: Choice | None) -> None:
        """Mark the order that a choice carried out as done: its expansion has ended."""
        if choice is not None and choice.order is not None:
            self.forks.pop(choice.order, None)

    def waiting(self, tree: Tree) -> Iterator[tuple[int, Order]]:
        """Yield the fork orders that can still be carried out, with their numbers, oldest first."""
        return ((number, order) for number, order in self.forks.items() if tree.expandable(order.node))

    def pin(self, tree: Tree) -> NodeId | None:
        """The pin that is in force."""
        return next((pin for pin in reversed(self.pins) if tree.open_below(pin)), None)


def check(order: Order, tree: Tree, steering: Steering) -> None:
    """Check that an order can be carried out.

    Raises:
        agent.errors.UsageError: it cannot; the message says why, and what to do instead.
    """
    node = order.node
    require_node(node, len(tree))
    if len(order.hint.encode("utf-8", "replace")) > HINT_BYTES:
        raise UsageError(f"the hint has more than {HINT_BYTES} bytes; say it in fewer words")
    if order.act == "fork" and not tree.expandable(node):
        raise UsageError(f"state {node} cannot be expanded: {_why_closed(tree, node)}; {_remedy(tree, node, 'fork')}")
    if order.act == "pin" and not tree.open_below(node):
        raise UsageError(
            f"nothing at or below state {node} can be expanded: {_why_closed(tree, node)}; {_remedy(tree, node, 'pin')}"
        )
    if order.act == "unpin" and node not in steering.pins:
        pinned = f"pinned: {', '.join(map(str, steering.pins))}" if steering.pins else "no state is pinned"
        raise UsageError(f"state {node} is not pinned; {pinned}")
    if order.act == "prune" and node == tree.root.id:
        raise UsageError("pruning state 0 would end the search; stop it with Ctrl-C, or prune states below the root")


def require_node(node_id: NodeId, nodes: int) -> None:
    """Check that a run of so many nodes has this node.

    Raises:
        agent.errors.UsageError: it does not.
    """
    if not 0 <= node_id < nodes:
        known = f"this run has states 0 to {nodes - 1}" if nodes else "this run has no states yet"
        raise UsageError(f"there is no state {node_id}: {known}")


def _why_closed(tree: Tree, node_id: NodeId) -> str:
    if tree[node_id].terminal:
        return "it is solved or was submitted"
    if tree[node_id].refused:
        return "the run's gate refused it"
    return "it was pruned" if tree.pruned(node_id) else "nothing is left to propose there"


def _remedy(tree: Tree, node_id: NodeId, act: str) -> str:
    above = next((node.id for node in reversed(tree.path(node_id)) if tree.expandable(node.id)), None)
    return f"{act} state {above} above it" if above is not None else "`ramify show` lists the others"
