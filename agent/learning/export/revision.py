"""Rows that correct an error: the steps of a worse path up to the first wrong one, a reflection that undoes them, and
then a path to a solved state (after Agent-R, arXiv 2501.11425).

Invariants: the loss is on for the reflection and what follows, never for the wrong steps. The first wrong turn is the
one that a model marked (`ramify reflect`); if it marked none, the turn is found by tests. The calls of a row, carried
out in order, lead to the files of the solved state: rows whose wrong steps cannot be undone are skipped. No run had
these conversations: `stitched` is true in each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from agent.learning.export import AtLeastOne, Row, Share, skipped
from agent.learning.export.first_error import FirstError
from agent.learning.export.hygiene import TAMPERED, flagged
from agent.learning.export.provenance import not_verbatim, provenance
from agent.learning.export.sft import winners
from agent.learning.export.turns import MERGE, Turn, Turns
from agent.learning.export.undoing import before_the_end, carried_out, notes_of, undone
from agent.learning.export.weaving import silent
from agent.models import Message
from agent.policy.chat.dialects import NATIVE, TEXT
from agent.prompts import render
from agent.run.credit import outcome
from agent.run.run import Run
from agent.run.tree.node import Node


@dataclass(frozen=True, slots=True)
class Revision:
    """One row for each worse leaf of a tree, spliced with the shortest path that succeeded."""

    gap: Share = 0.2
    """A leaf is worse if its value is lower by more than this; a state that succeeded is worth 1."""
    pairs: AtLeastOne = 8
    """The maximum number of rows per tree; leaves that share most of the good path come first."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns = Turns(run)
        leaves, skips = winners(run, turns)
        yield from skips
        for good in leaves[:1]:
            rows, worse = 0, self.worse(run, good)
            if not worse:
                yield skipped("no rollout of the run is worse than the right one")
            for bad in worse:
                row = skipped(TAMPERED) if bad.id in flagged(run) else _spliced(run, turns, good, bad)
                yield row
                rows += "skipped" not in row
                if rows == self.pairs:
                    break

    def worse(self, run: Run, good: Node) -> list[Node]:
        """The leaves that are worse than a good one, those that share most of its path first."""
        tree = run.tree
        leaves = [
            node for node in tree if node.parents and not tree.children(node.id) and good not in tree.path(node.id)
        ]
        value = outcome(run, "value")
        worse = [leaf for leaf in leaves if value(good) - value(leaf) > self.gap]
        return sorted(worse, key=lambda leaf: (-tree.depth(tree.common_ancestor(good.id, leaf.id).id), leaf.id))


@dataclass(frozen=True, slots=True)
class Ways:
    """Two paths from one state."""

    fork: Node
    wrong: tuple[Turn, ...]
    right: tuple[Turn, ...]


def ways(run: Run, turns: Turns, good: Node, bad: Node) -> Ways:
    """The turns from the state at which the paths to two leaves diverge; those of the bad path end before a merge of
    branches."""
    fork = run.tree.common_ancestor(good.id, bad.id)
    good_way, bad_way = (run.tree.path(leaf.id)[run.tree.depth(fork.id) + 1 :] for leaf in (good, bad))
    until_a_merge = takewhile(lambda node: node.steps, bad_way)
    wrong, right = (tuple(turn for node in way for turn in turns.of(node.id)) for way in (until_a_merge, good_way))
    return Ways(fork, wrong, right)


def _spliced(run: Run, turns: Turns, good: Node, bad: Node) -> Row:
    both = ways(run, turns, good, bad)
    marked = FirstError.of(run, both.fork.id, bad.id)
    wrong = both.wrong[: marked.turn + 1] if marked else _up_to_the_first_error(run, both, bad, run.solved(good.id))
    if wrong is None:
        return skipped(MERGE)
    if not wrong:
        return skipped("no wrong step was found on the worse path")
    error = run.tree[wrong[-1].node]
    reflection = marked.reflection if marked else render("export_reflection", notes=notes_of(error)).strip()
    mistaken = before_the_end(list(wrong))
    undoing = undone(mistaken) or "the worse path changed nothing"
    if isinstance(undoing, str):
        return skipped(undoing)
    form = NATIVE if both.right[-1].tools else TEXT
    nodes = [*(node.id for node in run.tree.path(good.id)), *dict.fromkeys(turn.node for turn in wrong)]
    return {
        "messages": [
            *map(silent, mistaken[-1].conversation),
            *carried_out("undo", reflection, undoing, form),
            *_with_results(both.right),
        ],
        "tools": list(both.right[-1].tools),
        "stitched": True,
        "error": error.id,
        "provenance": not_verbatim(provenance(run, good.id, both.right, others=nodes)),
    }


def _up_to_the_first_error(run: Run, both: Ways, bad: Node, goals: bool) -> Sequence[Turn] | None:
    """The turns of the bad path up to the first state that broke a test or, if there are `goals`, is not better than
    its parent: without goals, most right states are worth no more than the base state. Empty if there is no such state;
    None if a merge comes first."""
    path = run.tree.path(bad.id)
    for parent, node in pairwise(path[run.tree.depth(both.fork.id) :]):
        if not node.steps:
            return None
        if node.evaluation.harm > parent.evaluation.harm or (goals and node.value <= parent.value):
            return [turn for turn in both.wrong if turn.node <= node.id]
    return ()


def _with_results(right: Sequence[Turn]) -> Iterator[Message]:
    for turn in right[:-1]:
        yield from (turn.answer, *turn.results)
    yield right[-1].answer
