"""Tree: facts that never change, and the counts that are derived from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from agent.actions.canonical import canonical
from agent.measure import SuiteReport
from agent.measure.baseline import joined
from agent.run.tree.aggregates import SubtreeCounts
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.graph import StateGraph
from agent.run.tree.node import ROOT, Act, Attempt, Node, NodeId, Step, Work

if TYPE_CHECKING:
    import networkx as nx


class View(Protocol):
    """Data that a search derives from a tree in order to choose quickly, such as an index or a heap. A subclass
    implements only the methods that it needs.

    Invariant: a view depends on the tree alone; a view that is made now equals one that was kept up to date for a long
    time.
    """

    def changed(self, node_id: NodeId) -> None:
        """Called when the node is new, or its own facts changed: its expansions, those in flight, or whether it is
        expandable."""
        return

    def changed_below(self, node_id: NodeId) -> None:
        """Called when a count over subtrees (visits, values, open nodes, work in flight, measurements) changed for the
        node and all nodes above it. This is called for the lowest node only. A view that depends on it walks up when it
        is read (`agent.search.support.below`), so that a change in a deep chain costs no walk."""
        return


_V = TypeVar("_V", bound=View)


class Tree:
    """A directed graph of nodes, plus what is derived from it: visits, value sums, work in flight.

    Only `agent.run.run.Run` changes a tree, by folding events, and `agent.engine.engine` by marking work in flight
    (`begin`, `end`).
    """

    def __init__(self) -> None:
        self.structure = StateGraph()
        """The edges: which node each node was made from."""
        self._nodes: list[Node] = []
        self._by_hash: dict[str, NodeId] = {}
        self._subtrees = SubtreeCounts(self.structure)
        self._expanded: list[int] = []
        self._ended: list[int] = []
        self._attempts: list[list[Attempt]] = []
        self._failures: dict[NodeId, list[str]] = {}
        self._measured_again: dict[NodeId, list[Evaluation]] = {}
        self._begun: Counter[Work] = Counter()
        self._exhausted: set[tuple[NodeId, str]] = set()
        self._closed: set[NodeId] = set()
        self._pruned: set[NodeId] = set()
        self.solved: list[NodeId] = []
        """Nodes that are solved according to their evaluation, in the order of recording."""
        self.proposals = TranspositionIndex()
        """The proposals at each node, and how often each was made."""
        self.ended_expansions = 0
        """Choices that were carried out, whatever their act and their result."""
        self.in_flight = 0
        """Choices that are in flight."""
        self._pending: Counter[NodeId] = Counter()
        self._best: NodeId = ROOT
        self._views: dict[Hashable, View] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __getitem__(self, node_id: NodeId) -> Node:
        return self._nodes[node_id]

    @property
    def graph(self) -> nx.DiGraph[NodeId]:
        """The nodes' ids and the edges, each with its `kind` (`edit` or `reference`), as they are now."""
        return self.structure.networkx()

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

    def common_ancestor(self, one: NodeId, other: NodeId) -> Node:
        """Return the deepest state that both come from, along edit parents, or one of them if it is above the other."""
        return self._nodes[self.structure.common_ancestor(one, other)]

    def children(self, node_id: NodeId) -> list[Node]:
        """The nodes whose edit was made in this state, oldest first."""
        return [self._nodes[child] for child in self.structure.children(node_id)]

    def parent_id(self, node_id: NodeId) -> NodeId | None:
        """The id of the state that the node's edit was made in; None for the root."""
        return self.structure.parent(node_id)

    def path(self, node_id: NodeId) -> tuple[Node, ...]:
        """Return the path from the root to the node, along edit parents."""
        return tuple(self._nodes[n] for n in self.structure.path(node_id))

    def depth(self, node_id: NodeId) -> int:
        """Edits between the root and the node."""
        return self.structure.depth(node_id)

    def visits(self, node_id: NodeId) -> int:
        """Measured nodes in the subtree, the node itself included."""
        return self._subtrees.visits(node_id)

    def value_sum(self, node_id: NodeId) -> float:
        """Sum of the values in the subtree, the node itself included."""
        return self._subtrees.value_sum(node_id)

    def value_max(self, node_id: NodeId) -> float:
        """Highest value in the subtree, the node itself included."""
        return self._subtrees.value_max(node_id)

    def evaluations(self, node_id: NodeId) -> tuple[Evaluation, ...]:
        """All evaluations of the node's state, the node's own first. Values, value sums and the best node depend on the
        first alone; a search may use the others."""
        return (self._nodes[node_id].evaluation, *self._measured_again.get(node_id, ()))

    def expansions(self, node_id: NodeId) -> int:
        """Expansions of the node that were recorded (children, duplicates and failures) or are in flight. Merges with
        other branches and repeated measurements do not count."""
        return self._expanded[node_id] + self._pending[node_id]

    def ended(self, node_id: NodeId) -> int:
        """Choices that were carried out at the node, whatever their act and their result."""
        return self._ended[node_id]

    def pending_at(self, node_id: NodeId) -> int:
        """Expansions of the node that are in flight."""
        return self._pending[node_id]

    def begun(self, node_id: NodeId, act: Act = "expand", other: NodeId | None = None, policy_id: str = "") -> int:
        """Return how often exactly this work was started at the node: expanded by that policy, fused with that `other`,
        or measured again. Work in flight and failed work count."""
        return self._begun[node_id, act, other, policy_id]

    def pending_below(self, node_id: NodeId) -> int:
        """Choices in flight in the subtree. A search counts them as visits without value (virtual loss)."""
        return self._subtrees.pending(node_id)

    def open_below(self, node_id: NodeId) -> int:
        """Nodes of the subtree, the node itself included, that may be selected."""
        return self._subtrees.open(node_id)

    def attempts(self, node_id: NodeId) -> tuple[Attempt, ...]:
        """The results of the expansions of the node, oldest first."""
        return tuple(self._attempts[node_id])

    def failures(self, node_id: NodeId) -> tuple[str, ...]:
        """Why expansions and measurements of the node ended without a state, oldest first."""
        return tuple(self._failures.get(node_id, ()))

    def expandable(self, node_id: NodeId) -> bool:
        """Whether a search may select the node."""
        node = self._nodes[node_id]
        return node_id not in self._closed and not node.terminal and not node.refused

    def exhausted_for(self, node_id: NodeId, policy_id: str) -> bool:
        """Whether that policy has nothing left to propose at the node."""
        return (node_id, policy_id) in self._exhausted

    def pruned(self, node_id: NodeId) -> bool:
        """Whether the node or one of its ancestors was pruned."""
        return node_id in self._pruned

    def best(self) -> Node:
        """The node of highest value, the oldest among equals."""
        return self._nodes[self._best]

    def view(self, key: Hashable, make: Callable[[Tree], _V]) -> _V:
        """Return the view with this key. It is made by `make` at the first call and kept up to date from then on."""
        if key not in self._views:
            view = make(self)
            for node_id in range(len(self)):
                view.changed(node_id)
                view.changed_below(node_id)
            self._views[key] = view
        return self._views[key]  # type: ignore[return-value]  # the key stands for the type

    def forget(self, key: Hashable) -> None:
        """Drop the view with this key, if there is one, because nothing uses it any more."""
        self._views.pop(key, None)

    def add(self, node: Node) -> None:
        """Record a measured state. Only the fold calls this."""
        if node.id != len(self._nodes):
            raise ValueError(f"node {node.id} recorded out of order: {len(self._nodes)} expected")
        self._nodes.append(node)
        self._by_hash.setdefault(node.state_hash, node.id)
        self.structure.add(node.parents)
        self._expanded.append(0)
        self._ended.append(0)
        self._attempts.append([])
        if node.evaluation.solved:
            self.solved.append(node.id)
        if node.value > self._nodes[self._best].value:
            self._best = node.id
        parent = node.parents[0] if node.parents else None
        if parent in self._pruned:
            self._pruned.add(node.id)
            self._closed.add(node.id)
        self._subtrees.add(node.id, node.value, self.expandable(node.id))
        self._tell_changed(node.id)
        self._tell_changed_below(node.id)
        if parent is not None and node.kind == "fuse":
            self._end_work(parent, "fuse", node.parents[-1], "")
        elif parent is not None:
            self._attempts[parent].append(Attempt(node.id, label=node.label, policy_id=node.policy_id))
            self.proposals.record(parent, node.id, proposal_of(node.steps))
            self._end_work(parent, "expand", None, node.policy_id)

    def merge(
        self,
        parent: NodeId,
        existing: NodeId,
        label: str = "",
        act: Act = "expand",
        other: NodeId | None = None,
        policy_id: str = "",
        proposal: str = "",
    ) -> None:
        """Record that an edit of `parent` led to a known state: it gets a second edge instead of a second node. A state
        that `parent` itself comes from gets no edge, so that the graph has no cycles. `proposal` is the edit in
        canonical form (`proposal_of`)."""
        self.structure.refer(parent, existing)
        if act == "expand":
            self._attempts[parent].append(Attempt(existing, known=True, label=label, policy_id=policy_id))
            self.proposals.record(parent, existing, proposal)
        self._end_work(parent, act, other, policy_id)

    def fail(
        self, node_id: NodeId, reason: str = "", act: Act = "expand", other: NodeId | None = None, policy_id: str = ""
    ) -> None:
        """Record work that ended without a state. If two branches cannot be merged, that counts as a failure of
        neither."""
        if act != "fuse":
            self._failures.setdefault(node_id, []).append(reason)
        if act == "expand":
            self._attempts[node_id].append(Attempt(reason=reason, policy_id=policy_id))
        self._end_work(node_id, act, other, policy_id)

    def measure_again(self, node_id: NodeId, evaluation: Evaluation) -> None:
        """Record another measurement of the node's state."""
        self._measured_again.setdefault(node_id, []).append(evaluation)
        self._end_work(node_id, "measure", None, "")
        self._tell_changed_below(node_id)

    def extend(self, report: SuiteReport) -> None:
        """Add further results of the base state's tests to the root's report."""
        self._nodes[ROOT] = replace(self.root, report=joined(self.root.report, report))

    def exhaust_for(self, node_id: NodeId, policy_id: str) -> None:
        """Record that one policy of several has nothing left to propose at the node."""
        self._exhausted.add((node_id, policy_id))

    def close(self, node_id: NodeId) -> None:
        """Record that the node has nothing left to propose."""
        if self.expandable(node_id):
            self._closed.add(node_id)
            self._tell_changed(node_id)
            self._subtrees.close(node_id)
            self._tell_changed_below(node_id)

    def prune(self, node_id: NodeId) -> None:
        """Record that the node and all below it, now and later, are never to be expanded again."""
        below = self.structure.subtree(node_id)
        for each in filter(self.expandable, below):
            self._subtrees.close(each)
        self._pruned.update(below)
        self._closed.update(below)
        for each in below:
            self._tell_changed(each)
            self._tell_changed_below(each)

    def begin(self, node_id: NodeId, act: Act = "expand", other: NodeId | None = None, policy_id: str = "") -> None:
        """Mark work at the node as in flight. Only the engine calls this and `end`."""
        self._add_pending((node_id, act, other, policy_id), 1)

    def end(self, node_id: NodeId, act: Act = "expand", other: NodeId | None = None, policy_id: str = "") -> None:
        """Undo one `begin`."""
        self._add_pending((node_id, act, other, policy_id), -1)

    def _tell_changed(self, node_id: NodeId) -> None:
        for view in self._views.values():
            view.changed(node_id)

    def _tell_changed_below(self, node_id: NodeId) -> None:
        for view in self._views.values():
            view.changed_below(node_id)

    def _add_pending(self, work: Work, change: int) -> None:
        node_id, act, _, _ = work
        self.in_flight += change
        self._begun[work] += change
        if act == "expand":
            self._pending[node_id] += change
        self._tell_changed(node_id)
        self._subtrees.add_pending(node_id, change)
        self._tell_changed_below(node_id)

    def _end_work(self, node_id: NodeId, act: Act, other: NodeId | None, policy_id: str) -> None:
        self._begun[node_id, act, other, policy_id] += 1
        self._expanded[node_id] += act == "expand"
        self._ended[node_id] += 1
        self.ended_expansions += 1
        self._tell_changed(node_id)


def proposal_of(steps: Sequence[Step]) -> str:
    """The proposal of an expansion in canonical form; empty if the same proposal could lead to another state, because
    it took several turns or ran a command."""
    return canonical(steps[0].actions) if len(steps) == 1 else ""


class TranspositionIndex:
    """Which state each edit of a state led to, and how often it was proposed: two actions that lead to one state are
    one node with two edges."""

    def __init__(self) -> None:
        self._led_to: dict[tuple[NodeId, str], NodeId] = {}
        self._edge_counts: Counter[tuple[NodeId, NodeId]] = Counter()

    def record(self, parent: NodeId, child: NodeId, proposal: str) -> None:
        """Record that an expansion of `parent` led to `child`; `proposal` is its proposal in canonical form."""
        self._edge_counts[parent, child] += 1
        if proposal:
            self._led_to.setdefault((parent, proposal), child)

    def child_for(self, parent: NodeId, proposal: str) -> NodeId | None:
        """Return the node that the same proposal led to from the same state, or None if it was not made there
        before."""
        return self._led_to.get((parent, proposal)) if proposal else None

    def proposals_from(self, parent: NodeId) -> frozenset[str]:
        """Return the proposals that were made at a state and led to another, in canonical form."""
        return frozenset(proposal for above, proposal in self._led_to if above == parent)

    def edge_count(self, parent: NodeId, child: NodeId) -> int:
        """Return how often a proposal at `parent` led to `child`."""
        return self._edge_counts[parent, child]
