"""Node and Tree: facts that never change, and the counts that are derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import networkx as nx

from agent.actions import Action, Observation
from agent.budget import Usage
from agent.measure import SuiteReport
from agent.value import Evaluation
from sandboxes import Snapshot

__all__ = ["Node", "NodeId", "Step", "Tree", "View"]

NodeId = int
ROOT: NodeId = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a policy."""

    actions: tuple[Action, ...]
    observations: tuple[Observation, ...]
    message: str = ""
    """What the policy said with its actions. A chat policy packs its turn here (`agent.policy.transcript`)."""
    usage: Usage = field(default_factory=Usage)
    policy_id: str = ""
    """Who took the turn, where several policies work on one tree."""


@dataclass(frozen=True, slots=True)
class Node:
    """A measured state. Ids count up from 0, the root, in the order of recording."""

    id: NodeId
    parents: tuple[NodeId, ...]
    """The first is the state the edit was made in; the others are references. Empty for the root."""
    steps: tuple[Step, ...]
    snapshot: Snapshot
    report: SuiteReport
    evaluation: Evaluation
    prior: float = 1.0
    """In [0, 1]: how likely the policy thought this child to be right, before it was measured."""
    policy_id: str = ""
    terminal: bool = False
    """Never expanded: it is solved, or its policy submitted."""
    label: str = ""
    """A few words for people: what was done (`mutate: + -> - at calc.py:12`)."""
    kind: str = ""
    """What the search asked for here (`strategy`, `solution`, `debug`, `fuse`); empty for a plain edit."""

    @property
    def state_hash(self) -> str:
        """The digest of the state: one test run per distinct value."""
        return self.snapshot.digest

    @property
    def value(self) -> float:
        """The evaluation's value, in [0, 1]."""
        return self.evaluation.value


class View(Protocol):
    """What a search derives from a tree in order to choose fast: an index, a heap.

    Law: a view says what the tree says and nothing else; one that is made now equals one that was kept for long.
    """

    def changed(self, node_id: NodeId) -> None:
        """The node is new, or its own facts changed: its expansions, those in flight, whether it is expandable."""
        ...

    def changed_below(self, node_id: NodeId) -> None:
        """What is counted over the node's subtree changed: visits, values, open nodes, work in flight."""
        ...


_V = TypeVar("_V", bound=View)


class Tree:
    """A directed graph of nodes, plus what is derived from it: visits, value sums, work in flight.

    Only `agent.run.Run` changes a tree, by folding events, and `agent.engine` by marking work in flight
    (`begin`, `end`).
    """

    def __init__(self) -> None:
        self.graph: nx.DiGraph[NodeId] = nx.DiGraph()
        self._nodes: list[Node] = []
        self._by_hash: dict[str, NodeId] = {}
        self._children: list[list[NodeId]] = []
        self._depths: list[int] = []
        self._visits: list[int] = []
        self._value_sums: list[float] = []
        self._value_maxes: list[float] = []
        self._begun: list[int] = []
        self._failures: dict[NodeId, list[str]] = {}
        self._closed: set[NodeId] = set()
        self._pruned: set[NodeId] = set()
        self.solved: list[NodeId] = []
        """Nodes whose evaluation says solved, in the order of recording."""
        self.ended_expansions = 0
        """Expansions of all nodes that ended, whatever their result."""
        self.in_flight = 0
        """Expansions of all nodes that are in flight."""
        self._pending: Counter[NodeId] = Counter()
        self._pending_below: Counter[NodeId] = Counter()
        self._open_below: list[int] = []
        self._best: NodeId = ROOT
        self._views: dict[Hashable, View] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __getitem__(self, node_id: NodeId) -> Node:
        return self._nodes[node_id]

    @property
    def root(self) -> Node:
        """The base state. Raises IndexError while the tree is empty."""
        return self._nodes[ROOT]

    def with_state(self, state_hash: str) -> Node | None:
        """The node that holds this state, if one does."""
        node_id = self._by_hash.get(state_hash)
        return None if node_id is None else self._nodes[node_id]

    def parent(self, node_id: NodeId) -> Node | None:
        """The state that the node's edit was made in; None for the root."""
        parents = self._nodes[node_id].parents
        return self._nodes[parents[0]] if parents else None

    def children(self, node_id: NodeId) -> list[Node]:
        """The nodes whose edit was made in this state, oldest first."""
        return [self._nodes[child] for child in self._children[node_id]]

    def path(self, node_id: NodeId) -> tuple[Node, ...]:
        """From the root to the node, along edit parents."""
        return tuple(self._nodes[n] for n in reversed(list(self._upwards(node_id))))

    def depth(self, node_id: NodeId) -> int:
        """Edits between the root and the node."""
        return self._depths[node_id]

    def visits(self, node_id: NodeId) -> int:
        """Measured nodes in the subtree, the node itself included."""
        return self._visits[node_id]

    def value_sum(self, node_id: NodeId) -> float:
        """Sum of the values in the subtree, the node itself included."""
        return self._value_sums[node_id]

    def value_max(self, node_id: NodeId) -> float:
        """Highest value in the subtree, the node itself included."""
        return self._value_maxes[node_id]

    def expansions(self, node_id: NodeId) -> int:
        """Expansions of the node that were recorded (children, duplicates and failures) or are in flight."""
        return self._begun[node_id] + self._pending[node_id]

    def pending(self, node_id: NodeId) -> int:
        """Expansions of the node that are in flight."""
        return self._pending[node_id]

    def pending_below(self, node_id: NodeId) -> int:
        """Expansions in flight in the subtree. A search counts them as visits without value (virtual loss)."""
        return self._pending_below[node_id]

    def open_below(self, node_id: NodeId) -> int:
        """Nodes of the subtree, the node itself included, that may be selected."""
        return self._open_below[node_id]

    def failures(self, node_id: NodeId) -> tuple[str, ...]:
        """Why expansions of the node ended without a state, oldest first."""
        return tuple(self._failures.get(node_id, ()))

    def expandable(self, node_id: NodeId) -> bool:
        """Whether a search may select the node."""
        return node_id not in self._closed and not self._nodes[node_id].terminal

    def pruned(self, node_id: NodeId) -> bool:
        """Whether the node or one above it was pruned."""
        return node_id in self._pruned

    def best(self) -> Node:
        """The node of highest value, the oldest among equals."""
        return self._nodes[self._best]

    def view(self, key: Hashable, make: Callable[[Tree], _V]) -> _V:
        """The view of this key, made by `make` when it is asked for first and kept up to date from then on."""
        if key not in self._views:
            view = make(self)
            for node in self._nodes:
                view.changed(node.id)
                view.changed_below(node.id)
            self._views[key] = view
        return self._views[key]  # type: ignore[return-value]  # the key stands for the type

    def add(self, node: Node) -> None:
        """Record a measured state. Only the fold calls this."""
        if node.id != len(self._nodes):
            raise ValueError(f"node {node.id} recorded out of order: {len(self._nodes)} expected")
        self._nodes.append(node)
        self._by_hash.setdefault(node.state_hash, node.id)
        self._children.append([])
        self._depths.append(self._depths[node.parents[0]] + 1 if node.parents else 0)
        self._visits.append(0)
        self._value_sums.append(0.0)
        self._value_maxes.append(node.value)
        self._begun.append(0)
        self._open_below.append(0)
        if node.evaluation.solved:
            self.solved.append(node.id)
        if node.value > self._nodes[self._best].value:
            self._best = node.id
        self.graph.add_node(node.id)
        for rank, parent in enumerate(node.parents):
            self.graph.add_edge(parent, node.id, kind="edit" if rank == 0 else "reference")
        if node.parents:
            self._children[node.parents[0]].append(node.id)
            if node.parents[0] in self._pruned:
                self._pruned.add(node.id)
                self._closed.add(node.id)
        self._tell(node.id)
        self._back_up(node)
        if node.parents:
            self._end_expansion(node.parents[0])

    def merge(self, parent: NodeId, existing: NodeId) -> None:
        """Record that an edit of `parent` led to a state that was known: a second edge, no second node."""
        if not self.graph.has_edge(parent, existing) and parent != existing:
            self.graph.add_edge(parent, existing, kind="reference")
        self._end_expansion(parent)

    def fail(self, node_id: NodeId, reason: str = "") -> None:
        """Record an expansion that ended without a state."""
        self._failures.setdefault(node_id, []).append(reason)
        self._end_expansion(node_id)

    def close(self, node_id: NodeId) -> None:
        """Record that the node has nothing left to propose."""
        if self.expandable(node_id):
            self._closed.add(node_id)
            self._tell(node_id)
            for above in self._upwards(node_id):
                self._open_below[above] -= 1
                self._tell_below(above)

    def prune(self, node_id: NodeId) -> None:
        """Record that the node and all below it, now and later, are never to be expanded again."""
        below, (_, *above) = self._downwards(node_id), self._upwards(node_id)
        lost = self._open_below[node_id]
        self._pruned.update(below)
        self._closed.update(below)
        for each in below:
            self._open_below[each] = 0
        for each in above:
            self._open_below[each] -= lost
        for each in below:
            self._tell(each)
        for each in (*below, *above):
            self._tell_below(each)

    def begin(self, node_id: NodeId) -> None:
        """Mark an expansion of the node as in flight. Only the engine calls this and `end`."""
        self._fly(node_id, 1)

    def end(self, node_id: NodeId) -> None:
        """Take back one `begin`."""
        self._fly(node_id, -1)

    def _fly(self, node_id: NodeId, change: int) -> None:
        self.in_flight += change
        self._pending[node_id] += change
        self._tell(node_id)
        for above in self._upwards(node_id):
            self._pending_below[above] += change
            self._tell_below(above)

    def _end_expansion(self, node_id: NodeId) -> None:
        self._begun[node_id] += 1
        self.ended_expansions += 1
        self._tell(node_id)

    def _back_up(self, node: Node) -> None:
        for above in self._upwards(node.id):
            self._visits[above] += 1
            self._value_sums[above] += node.value
            self._value_maxes[above] = max(self._value_maxes[above], node.value)
            self._open_below[above] += self.expandable(node.id)
            self._tell_below(above)

    def _tell(self, node_id: NodeId) -> None:
        for view in self._views.values():
            view.changed(node_id)

    def _tell_below(self, node_id: NodeId) -> None:
        for view in self._views.values():
            view.changed_below(node_id)

    def _upwards(self, node_id: NodeId) -> Iterator[NodeId]:
        """The node and every state above it, the root last."""
        yield node_id
        while parents := self._nodes[node_id].parents:
            node_id = parents[0]
            yield node_id

    def _downwards(self, node_id: NodeId) -> list[NodeId]:
        """The node and every state below it."""
        found = [node_id]
        for each in found:
            found.extend(self._children[each])
        return found
