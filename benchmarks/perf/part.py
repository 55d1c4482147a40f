"""The part of a run's states that one algorithm alone would have found, as a tree in which it selects."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.run.events import Added, Exhausted, Failed, Merged, Remeasured
from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Act, NodeId
from agent.run.tree.tree import Tree

POLICY = "mutate/1"

Work = tuple[NodeId, Act, NodeId | None, int]
"""The node of the whole run, the act, the other node, and the ordinal."""


@dataclass(slots=True)
class Outcome:
    """The outcome of one piece of work."""

    event: Added | Merged | Failed | Exhausted | Remeasured
    closes: bool = False
    """Whether the node is exhausted afterwards."""


class Part:
    """The tree of one play: the nodes of the whole run that the algorithm alone would have found."""

    def __init__(self, whole: Tree) -> None:
        self._whole = whole
        self._outer = [whole.root.id]
        self._inner = {whole.root.id: 0}
        self.tree = Tree()
        self.tree.add(whole.root)
        self.other_ways = 0
        self._other_way: set[NodeId] = set()

    def work(self, choice: Choice) -> Work:
        """The work in the whole run that corresponds to a choice in the part."""
        other = None if choice.other is None else self._outer[choice.other]
        begun = self.tree.begun(choice.node, choice.act, choice.other, POLICY if choice.act == "expand" else "")
        return self._outer[choice.node], choice.act, other, begun

    def take(self, choice: Choice, outcome: Outcome) -> NodeId | None:
        """Record the outcome of a choice. Returns the node of the whole run that is new to the part, if there is
        one."""
        event, node, tree = outcome.event, choice.node, self.tree
        policy = POLICY if choice.act == "expand" else ""
        self.other_ways += node in self._other_way
        new: NodeId | None = None
        match event:
            case Added() | Merged():
                state = event.node.id if isinstance(event, Added) else event.node
                label, proposal = (event.label, event.proposal) if isinstance(event, Merged) else ("", "")
                if state in self._inner:
                    tree.merge(node, self._inner[state], label, choice.act, choice.other, policy, proposal)
                else:
                    self._add(choice, state)
                    new = state
            case Failed():
                tree.fail(node, event.reason, choice.act, choice.other, policy)
            case Remeasured():
                tree.measure_again(node, Evaluation(event.evaluation.value))
            case Exhausted():
                pass
        if outcome.closes:
            tree.close(node)
        return new

    def _add(self, choice: Choice, state: NodeId) -> None:
        number, here = len(self.tree), self._whole[state]
        parents = (choice.node,) if choice.other is None else (choice.node, choice.other)
        self._inner[state] = number
        self._outer.append(state)
        if [self._outer[parent] for parent in parents] != list(here.parents) or choice.node in self._other_way:
            self._other_way.add(number)
        kind = "fuse" if choice.act == "fuse" else choice.kind
        self.tree.add(replace(here, id=number, parents=parents, kind=kind))
