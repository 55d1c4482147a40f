"""Rows for supervised fine-tuning: the conversations that led to solved states (`messages` and `tools`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.learning.export import AtLeastOne, Row, skipped
from agent.learning.export.hygiene import TAMPERED, flagged
from agent.learning.export.provenance import provenance
from agent.learning.export.turns import MERGE, Turn, Turns, is_merge
from agent.learning.export.weaving import Woven, weave
from agent.run.credit import succeeded
from agent.run.run import Run
from agent.run.tree.node import Node

NO_SUCCESS = "no rollout of the run succeeded"
"""Why a run has no row."""


@dataclass(frozen=True, slots=True)
class Sft:
    """One row for each winning path, the shortest first; more if a prompt does not continue the one before.

    An answer that several paths share has the loss on only in the first of them, so that each turn of a tree is trained
    once. Rows without `"train": false` can be trained with the loss on all answers.
    """

    paths: AtLeastOne = 8
    """The maximum number of paths per tree."""
    mask_errors: bool = False
    """The loss is off for turns in which a call failed (KAT-Coder's error-masked fine-tuning)."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, trained = Turns(run), set[tuple[int, int]]()
        leaves, skips = winners(run, turns)
        yield from skips
        for leaf in leaves[: self.paths]:
            for woven in weave(turns.path(leaf.id), self._trains(trained)):
                trained.update((turn.node, turn.number) for turn in woven.turns)
                yield row_of(run, leaf, woven)

    def _trains(self, trained: set[tuple[int, int]]) -> Callable[[Turn], bool]:
        return lambda turn: (turn.node, turn.number) not in trained and not (self.mask_errors and turn.failed)


def winners(run: Run, turns: Turns) -> tuple[list[Node], list[Row]]:
    """The nodes that succeeded (`agent.run.credit.succeeded`), those with the fewest turns first. Skipped instead are
    nodes whose state took more than the turns of their path, or tampering."""
    leaves, skips = list[Node](), list[Row]()
    for node in run.tree:
        if not succeeded(run, node.id):
            continue
        if is_merge(run.tree, node.id):
            skips.append(skipped(MERGE))
        elif node.id in flagged(run):
            skips.append(skipped(TAMPERED))
        else:
            leaves.append(node)
    if not (leaves or skips):
        skips.append(skipped(NO_SUCCESS))
    return sorted(leaves, key=lambda node: (len(turns.path(node.id)), node.id)), skips


def row_of(run: Run, leaf: Node, woven: Woven) -> Row:
    """A conversation as a row."""
    origin = provenance(run, leaf.id, woven.turns)
    return {"messages": woven.messages, "tools": list(woven.turns[-1].tools), "provenance": origin}
