"""Best of N: N independent rollouts from the base state."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.support.options import require_at_least
from agent.search.support.ranking import Ranking, why_first


@dataclass(frozen=True, slots=True)
class BestOfN:
    """Continue the rollouts that have started, oldest first, then start the next. A rollout is finished when its policy
    submits, when it is `depth` nodes long, or when an expansion leads to no new state.

    With `over`, more rollouts are started than needed, and the search ends with the first `n` that finish, so that no
    worker waits for the longest. The others stay unfinished in the tree; `ramify resume --unfinished` continues them,
    and so does a search with a larger `n`. This is the over-provisioning of APRIL, whose rollouts are those of a
    training step.
    """

    n: int = 8
    """How many rollouts to finish."""
    over: int = 0
    """How many rollouts beyond `n` may be started if workers are free."""
    depth: int = 8
    """Maximum number of nodes of a rollout."""

    def __post_init__(self) -> None:
        require_at_least(self, n=1, over=0, depth=1)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the end of the oldest unfinished rollout, else the root while rollouts may be started."""
        del rng
        ends = tree.view(self, lambda tree: _Ends(tree, self.depth)).ends
        root, begun = tree.root.id, tree.expansions(tree.root.id)
        finished = begun - tree.in_flight - len(ends)
        if finished >= self.n:
            return None
        if oldest := [node_id for _, node_id in ends.best()]:
            terms = {"begun": begun, "finished": finished}
            return Choice(oldest[0], reasons=(why_first(oldest, lambda n: {"score": -n, **terms}, len(ends)),))
        left = self.n + self.over - begun
        if left <= 0 or not tree.expandable(root):
            return None
        reason = Reason(root, {"score": left, "begun": begun, "finished": finished})
        return Choice(root, independent=True, reasons=(reason,))


class _Ends(View):
    """A view: the last nodes of the unfinished rollouts that wait for an expansion, oldest first."""

    def __init__(self, tree: Tree, depth: int) -> None:
        self._tree = tree
        self._depth = depth
        self.ends = Ranking()

    def changed(self, node_id: NodeId) -> None:
        """Note whether a rollout continues from the node."""
        tree = self._tree
        continues = tree.expandable(node_id) and not tree.expansions(node_id) and 0 < tree.depth(node_id) < self._depth
        self.ends.put(node_id, 0.0 if continues else None)
