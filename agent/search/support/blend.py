"""What a node is worth to a search: by what was measured of it and below it, and by what was thought of it before."""

from __future__ import annotations

from typing import Literal, get_args

from agent.run.tree.tree import NodeId, Tree

__all__ = ["MEASURED", "Measured", "faded", "measured"]

Measured = Literal["own", "mean", "max", "clade"]
MEASURED = get_args(Measured)


def measured(tree: Tree, node_id: NodeId, how: Measured) -> float:
    """In [0, 1]: the value of the node or of its subtree.

    `own` is the node's own value, `max` the highest of its subtree and `mean` the mean of its subtree, in which an
    expansion in flight counts as a value of 0. `clade` is `(1 + sum) / (2 + n)` over the same values: the mean of the
    Beta posterior that the Huxley-Goedel Machine draws from for a node and its descendants (arXiv 2510.21614), with a
    value as the part of a success. It trusts a subtree the more, the larger it is.
    """
    if how == "own":
        return tree[node_id].value
    if how == "max":
        return tree.value_max(node_id)
    visits, total = tree.visits(node_id) + tree.pending_below(node_id), tree.value_sum(node_id)
    return total / visits if how == "mean" else (1 + total) / (2 + visits)


def faded(prior: float, value: float, visits: int, weight: float) -> float:
    """`w * prior + (1 - w) * value` with `w = weight / (visits + weight)`: the prior counts as `weight` visits do.

    Without a visit it is all there is, with many it is nothing. I-MCTS has this with a weight of 0.2 (in the code of
    the paper's authors, `search_algorithm.py`).
    """
    share = weight / (visits + weight) if visits + weight else 0.0
    return share * prior + (1 - share) * value
