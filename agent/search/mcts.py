"""Monte Carlo tree search: descend by UCT or PUCT to a node that may have another child. The default search is
`auto.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from operator import add
from random import Random
from typing import Literal, get_args

from agent.run.tree.aggregates import SubtreeAggregate
from agent.run.tree.choice import Choice, Reason
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.support.options import require_at_least, require_one_of
from agent.search.support.ranking import why_first

Facts = tuple[float, ...]
"""The numbers from which a bound is computed."""
Aggregation = Literal["own", "mean", "max", "clade"]
AGGREGATIONS = get_args(Aggregation)


@dataclass(frozen=True, slots=True)
class Mcts:
    """Selection descends from the root to the child with the highest bound until a node may have another child. The
    tree does the other steps of the textbook: it expands, evaluates, and backs values and visit counts up.

    The bound is `value + explore`, and `explore` is `c * sqrt(ln N / n)` by `uct` and `c * P * sqrt(N - 1) / (1 + n)`
    by `puct`. `n` is the visit count of the child and `N` that of its parent, one more than the sum over its children.
    `P` is the child's fraction of its siblings' priors. `puct` is the formula of AlphaGo Zero, whose policy gives all
    priors at once, while here `P` falls with each new child. Ties go to the older child.

    An expansion in flight is a visit of value 0 (virtual loss). A node may have another child while it has fewer than
    `widen * N ** alpha` expansions (progressive widening).
    """

    formula: Literal["uct", "puct"] = "uct"
    """The bound by which a child is selected; `puct` uses priors."""
    c: float = 0.1
    """Weight of exploration, at least 0. Values of states that are an edit or two apart differ by tenths. Policies that
    propose single edits have other defaults (`agent.search.registry.SINGLE_EDITS`)."""
    value: Aggregation = "mean"
    """How a child's value is computed: `own`, its own value; `mean` or `max` over its subtree; or `clade`, the mean of
    a Beta posterior over its subtree (`subtree_value`)."""
    prior_visits: float = 0.0
    """The number of visits that the prior counts as in a child's value, at least 0 (`blend_with_prior`)."""
    prior_share: float = 0.0
    """The fixed share of the prior in a child's value, however many visits the child has, in [0, 1]. Agent Q mixes
    its critic's rating of an action with the value that the search found in this way (arXiv 2408.07199)."""
    widen: float = 2.0
    """Above 0."""
    alpha: float = 0.25
    """The exponent of progressive widening, in [0, 1]: 0 keeps the width at `widen`, 1 lets it grow in proportion to
    the visits."""
    depth: int = 32
    """Maximum number of edits on a path."""

    def __post_init__(self) -> None:
        require_one_of(self, formula=("uct", "puct"), value=AGGREGATIONS)
        require_at_least(self, c=0, prior_visits=0, depth=1)
        if not 0 <= self.prior_share <= 1:
            raise ValueError(f"prior_share={self.prior_share}: give a number in [0, 1]")
        if self.widen <= 0 or not 0 <= self.alpha <= 1:
            raise ValueError(f"widen={self.widen}, alpha={self.alpha}: give widen above 0 and alpha in [0, 1]")

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the node at which the descent ends."""
        del rng
        below = tree.view(self, lambda tree: _Below(tree, self))
        node_id, reasons = tree.root.id, list[Reason]()
        if not below.anything_open(node_id):
            return None
        while not (below.open[node_id] and self._width_left(tree, node_id) > 0):
            best = below.children(node_id)
            if not best:
                break
            if len(best) > 1:
                of_child = partial(self.terms, tree, priors=below.priors[node_id])
                reasons.append(why_first(best, of_child, len(best)))
            node_id = best[0]
        value, visits, *_ = self.facts(tree, node_id)
        terms = {"score": self._width_left(tree, node_id), "expansions": tree.expansions(node_id), "visits": visits}
        return Choice(node_id, reasons=(*reasons, Reason(node_id, {**terms, "value": value})))

    def terms(self, tree: Tree, node_id: NodeId, priors: float) -> Mapping[str, float]:
        """The bound of a node below the root, as `score`, and its terms; `priors` is the sum over it and its
        siblings."""
        parent = tree.parent(node_id)
        assert parent is not None
        facts, above = self.facts(tree, node_id), _visits(tree, parent.id)
        bound = self.bound(facts, above, priors)
        terms = {"score": bound, "value": facts[0], "explore": bound - facts[0], "visits": facts[1], "above": above}
        return terms if self.formula == "uct" else {**terms, "prior": facts[2]}

    def facts(self, tree: Tree, node_id: NodeId) -> Facts:
        """The numbers from which a node's bound is computed: value, visits and, for `puct`, the prior."""
        prior, visits = tree[node_id].prior, _visits(tree, node_id)
        value = blend_with_prior(prior, subtree_value(tree, node_id, self.value), visits, self.prior_visits)
        value = self.prior_share * prior + (1 - self.prior_share) * value
        return (value, visits, prior) if self.formula == "puct" else (value, visits)

    def bound(self, facts: Facts, above: int, priors: float) -> float:
        """The bound of a child with these facts. Its parent has `above` visits; `priors` is the sum over it and its
        siblings."""
        value, visits = facts[:2]
        if self.formula == "uct":
            return value + self.c * sqrt(log(above) / visits)
        return value + self.c * (facts[2] / priors if priors else 0.0) * sqrt(above - 1) / (1 + visits)

    def _width_left(self, tree: Tree, node_id: NodeId) -> float:
        """Return a number above 0 if the node may have another child."""
        return float(self.widen * _visits(tree, node_id) ** self.alpha) - tree.expansions(node_id)


def subtree_value(tree: Tree, node_id: NodeId, how: Aggregation) -> float:
    """Return the value of the node or of its subtree, in [0, 1].

    `own` is the node's own value, `max` the highest in its subtree and `mean` the mean over its subtree, in which an
    expansion in flight counts as a value of 0. `clade` is `(1 + sum) / (2 + n)` over the same values: the mean of the
    Beta posterior that the Huxley-Goedel Machine draws from for a node and its descendants (arXiv 2510.21614), with a
    value as a fraction of a success. It trusts a larger subtree more.
    """
    if how == "own":
        return tree[node_id].value
    if how == "max":
        return tree.value_max(node_id)
    visits, total = _visits(tree, node_id), tree.value_sum(node_id)
    return total / visits if how == "mean" else (1 + total) / (2 + visits)


def blend_with_prior(prior: float, value: float, visits: int, weight: float) -> float:
    """`w * prior + (1 - w) * value` with `w = weight / (visits + weight)`: the prior counts as much as `weight` visits.

    Without visits only the prior counts; with many visits it vanishes. I-MCTS has this with a weight of 0.2 (in the
    code of the paper's authors, `search_algorithm.py`).
    """
    share = weight / (visits + weight) if visits + weight else 0.0
    return share * prior + (1 - share) * value


def _visits(tree: Tree, node_id: NodeId) -> int:
    """The visit count of a node, expansions in flight included."""
    return tree.visits(node_id) + tree.pending_below(node_id)


class _Below(View):
    """A view: which nodes are open, and the sums of the priors of their children."""

    def __init__(self, tree: Tree, search: Mcts) -> None:
        self._tree = tree
        self._search = search
        self.open: list[bool] = []
        """Whether the node may be expanded."""
        self.priors: list[float] = []
        """Sum of the priors of the node's children."""
        self._open_nodes = SubtreeAggregate(tree.structure, 0, add)

    def changed(self, node_id: NodeId) -> None:
        """Count a new node; note whether the node is open."""
        if node_id == len(self.open):
            self.open.append(False)
            self.priors.append(0.0)
            if (parent := self._tree.parent_id(node_id)) is not None:
                self.priors[parent] += self._tree[node_id].prior
        is_open = self._tree.expandable(node_id) and self._tree.depth(node_id) < self._search.depth
        if is_open != self.open[node_id]:
            self.open[node_id] = is_open
            self._open_nodes.add(node_id, 1 if is_open else -1)

    def anything_open(self, node_id: NodeId) -> bool:
        """Whether the node's subtree has an open node."""
        return self._open_nodes[node_id] > 0

    def children(self, node_id: NodeId) -> list[NodeId]:
        """Return the children with open nodes in their subtree, the one with the highest bound first. No bound is
        computed for an only child, so that the descent of a long chain is fast."""
        children = [each for each in self._tree.structure.children(node_id) if self.anything_open(each)]
        if len(children) < 2:
            return children
        above, priors = _visits(self._tree, node_id), self.priors[node_id]
        search, tree = self._search, self._tree
        return sorted(children, key=lambda child: -search.bound(search.facts(tree, child), above, priors))
