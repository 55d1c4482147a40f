"""Go-Explore: keep an archive of the kinds of states found so far, return to an interesting one, explore from there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import sqrt
from random import Random

from agent.run.tree.choice import Choice
from agent.run.tree.node import NodeId
from agent.run.tree.tree import Tree, View
from agent.search.support.options import require_at_least
from agent.search.support.ranking import Ranking, why_first
from agent.search.support.signature import ending


@dataclass(frozen=True, slots=True)
class GoExplore:
    """Return to the state that a model chose when the newest state was measured (the judge's option `value.choose`),
    unless that state has been expanded since. Otherwise take the cell with the highest score (on a tie, the older
    cell) and expand its state with the shortest path. States that the model found uninteresting are skipped.

    A cell holds the states in which the same tests fail in the same way and whose values agree to two decimals. Its
    score is `(novelty / sqrt(seen) + value * v + interest * i) / sqrt(1 + tried)`: `seen` counts its states, `v` is
    their value, and `tried` counts the expansions of all of them, in flight or ended. `i` is how interesting a judge
    found the state when it was measured (`Evaluation.interest`, in [0, 1]; 0 without a judge).

    The archive, the cells and the return are Go-Explore's (arXiv 1901.10995); the choice and the judge of interest are
    those of Intelligent Go-Explore (arXiv 2405.15143). The score is our own: it only needs counts, and neither a random
    draw nor a question to a model at every step.
    """

    novelty: float = 1.0
    """Weight of a cell with few states. This and the other weights are at least 0."""
    value: float = 2.0
    """Weight of the value of a cell's best state."""
    interest: float = 1.0
    """Weight of how interesting a judge calls the cell (`value = judge`)."""

    def __post_init__(self) -> None:
        require_at_least(self, novelty=0, value=0, interest=0)

    def select(self, tree: Tree, rng: Random) -> Choice | None:
        """Select the state with the shortest path in the best cell."""
        del rng
        archive = tree.view(self, lambda tree: _Archive(tree, self))
        best = [archive.cells[index].state for _, index in archive.ranking.best()]
        chosen = archive.chosen()
        if chosen is not None:
            best = [chosen, *(node_id for node_id in best if node_id != chosen)]
        if not best:
            return None

        def terms(node_id: NodeId) -> dict[str, float]:
            terms = archive.terms(archive.cell_of[node_id])
            return terms if chosen is None else {**terms, "chosen": float(node_id == chosen)}

        reason = why_first(best, terms, len(archive.ranking))
        return Choice(reason.node, reasons=(reason,))

    def score(self, seen: float, tried: float, value: float, interest: float) -> float:
        """The score of a cell."""
        worth = self.novelty / sqrt(seen) + self.value * value + self.interest * interest
        return worth / sqrt(1 + tried)


@dataclass(slots=True)
class _Cell:
    """A group of similar states."""

    seen: int = 0
    tried: int = 0
    open: list[tuple[int, NodeId]] = field(default_factory=list)
    """Depth and id of the expandable states, the shortest path first."""

    @property
    def state(self) -> NodeId:
        return self.open[0][1]


class _Archive(View):
    """A view: the cells, and a ranking of those with an open state."""

    def __init__(self, tree: Tree, search: GoExplore) -> None:
        self._tree = tree
        self._search = search
        self.cells: list[_Cell] = []
        self._by_key: dict[Hashable, int] = {}
        self.cell_of: list[int] = []
        self._tried: list[int] = []
        self._newest_choice: NodeId | None = None
        """The newest state at which a model chose where to return."""
        self.ranking = Ranking()

    def changed(self, node_id: NodeId) -> None:
        """Put a new state into its cell; count its expansions there, and note whether it is open."""
        if node_id == len(self.cell_of):
            self._discover(node_id)
        index = self.cell_of[node_id]
        cell, tried, entry = self.cells[index], self._tree.expansions(node_id), (self._tree.depth(node_id), node_id)
        cell.tried += tried - self._tried[node_id]
        self._tried[node_id] = tried
        if not self._tree.expandable(node_id):
            del cell.open[bisect_left(cell.open, entry) : bisect_right(cell.open, entry)]
        self.ranking.put(index, self.terms(index)["score"] if cell.open else None)

    def chosen(self) -> NodeId | None:
        """Return the state that a model chose to return to. None if it chose none, or if that state cannot be expanded
        or has been expanded since."""
        tree, since = self._tree, self._newest_choice
        if since is None or (node := tree.with_state(tree[since].evaluation.return_to)) is None:
            return None
        is_open = (tree.depth(node.id), node.id) in self.cells[self.cell_of[node.id]].open
        gone_on = tree.pending_at(node.id) or any(child.id > since for child in tree.children(node.id))
        return node.id if is_open and not gone_on else None

    def terms(self, index: int) -> dict[str, float]:
        """The terms of the score of a cell with an open state."""
        cell = self.cells[index]
        evaluation = self._tree[cell.state].evaluation
        terms = {"seen": cell.seen, "tried": cell.tried, "value": evaluation.value, "interest": evaluation.interest}
        return {"score": self._search.score(**terms), **terms}

    def _discover(self, node_id: NodeId) -> None:
        key = (ending(self._tree, node_id), round(self._tree[node_id].value, 2))
        index = self._by_key.setdefault(key, len(self.cells))
        if index == len(self.cells):
            self.cells.append(_Cell())
        self.cell_of.append(index)
        self._tried.append(0)
        self.cells[index].seen += 1
        evaluation = self._tree[node_id].evaluation
        if not evaluation.dull:
            insort(self.cells[index].open, (self._tree.depth(node_id), node_id))
        if evaluation.return_to:
            self._newest_choice = node_id
