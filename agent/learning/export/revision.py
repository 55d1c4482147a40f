"""Rows that correct an error: the steps of a worse path up to the first wrong one, a reflection that undoes them, and
then a path to a solved state (after Agent-R, arXiv 2501.11425).

Laws: the loss is on for the reflection and what follows, never for the wrong steps. The first wrong step is found by
tests, not by a judge. The calls of a row, carried out in order, lead to the files of the solved state: rows whose wrong
steps cannot be undone are refused. No run had these conversations: `stitched` is true in each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.actions import Action
from agent.learning.export import Row, refused
from agent.learning.export.hygiene import TAMPERED, flagged
from agent.learning.export.provenance import never_said, provenance
from agent.learning.export.sft import winners
from agent.learning.export.turns import MERGE, Turn, Turns
from agent.learning.export.undoing import before_the_end, carried_out, notes_of, undone
from agent.learning.export.weaving import silent
from agent.models import Message
from agent.policy.chat.dialects import NATIVE, TEXT, ToolDialect
from agent.prompts import render
from agent.run.credit import outcome
from agent.run.run import Run
from agent.run.tree.node import Node

__all__ = ["Revision"]


@dataclass(frozen=True, slots=True)
class Revision:
    """One row for each worse leaf of a tree, spliced with the shortest path that succeeded."""

    gap: float = 0.2
    """In [0, 1]: a leaf is worse if its value is lower by more than this; a state that succeeded is worth 1."""
    pairs: int = 8
    """The most rows of a tree, at least 1; leaves that share most of the good path come first."""

    def __post_init__(self) -> None:
        if not 0 <= self.gap <= 1 or self.pairs < 1:
            raise ValueError(f"gap={self.gap}, pairs={self.pairs}: give a gap from 0 to 1 and at least 1 pair")

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns = Turns(run)
        leaves, refusals = winners(run, turns)
        yield from refusals
        for good in leaves[:1]:
            rows, worse = 0, self._worse(run, good)
            if not worse:
                yield refused("no way of the run is worse than the right one")
            for bad in worse:
                row = refused(TAMPERED) if bad.id in flagged(run) else _spliced(run, turns, good, bad)
                yield row
                rows += "refused" not in row
                if rows == self.pairs:
                    break

    def _worse(self, run: Run, good: Node) -> list[Node]:
        tree = run.tree
        leaves = [
            node for node in tree if node.parents and not tree.children(node.id) and good not in tree.path(node.id)
        ]
        worth = outcome(run, "value")
        worse = [leaf for leaf in leaves if worth(good) - worth(leaf) > self.gap]
        return sorted(worse, key=lambda leaf: (-tree.depth(tree.common_ancestor(good.id, leaf.id).id), leaf.id))


def _spliced(run: Run, turns: Turns, good: Node, bad: Node) -> Row:
    fork = run.tree.common_ancestor(good.id, bad.id)
    wrong = _up_to_the_first_error(run.tree.path(bad.id)[run.tree.depth(fork.id) :], goals=run.solved(good.id))
    if wrong is None:
        return refused("no step of the worse way was a step back")
    if not all(node.steps for node in wrong):
        return refused(MERGE)
    mistaken = before_the_end([turn for node in wrong for turn in turns.of(node.id)])
    undoing = undone(mistaken) or "the worse way changed nothing"
    if isinstance(undoing, str):
        return refused(undoing)
    right = [turn for node in run.tree.path(good.id)[run.tree.depth(fork.id) + 1 :] for turn in turns.of(node.id)]
    nodes = [node.id for node in (*run.tree.path(good.id), *wrong)]
    form = NATIVE if right[-1].tools else TEXT
    return {
        "messages": [*map(silent, mistaken[-1].told), *_reflection(wrong[-1], undoing, form), *_said(right)],
        "tools": list(right[-1].tools),
        "stitched": True,
        "error": wrong[-1].id,
        "provenance": never_said(provenance(run, good.id, right, others=nodes)),
    }


def _up_to_the_first_error(path: Sequence[Node], *, goals: bool) -> Sequence[Node] | None:
    """The nodes of a path after its first, up to the first that broke a test, or that is not better than its parent
    where there are `goals`: without, most right states are worth no more than the base state."""
    for number in range(1, len(path)):
        node, parent = path[number], path[number - 1]
        if node.evaluation.harm > parent.evaluation.harm or (goals and node.value <= parent.value):
            return path[1 : number + 1]
    return None


def _reflection(wrong: Node, undoing: tuple[Action, ...], form: ToolDialect) -> Iterator[Message]:
    yield from carried_out("undo", render("export_reflection", notes=notes_of(wrong)).strip(), undoing, form)


def _said(right: Sequence[Turn]) -> Iterator[Message]:
    for turn in right[:-1]:
        yield from (turn.answer, *turn.results)
    yield right[-1].answer
