"""Rows of solved paths without their detours, as `ramify shorten` found them: `messages` and `tools`, as of `sft`.

Law: a row is what was carried out once more and solved the task. Its answers are recorded ones, and the results of its
calls those that they gave without what was left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.analysis.minimize import NOTE, Shortened
from agent.learning.export import Row, refused
from agent.learning.export.provenance import never_said
from agent.learning.export.sft import row_of, winners
from agent.learning.export.turns import Turn, Turns, said, told_after
from agent.learning.export.weaving import weave
from agent.run.run import Run
from agent.run.tree.node import Node

__all__ = ["Retro"]


@dataclass(frozen=True, slots=True)
class Retro:
    """One row a solved path that was shortened. An answer that several paths begin with has the loss on in the first of
    them alone. `left_out` says how many turns are; what was measured between the states of the path is not in it."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, trained = Turns(run), set[str]()
        found, refusals = winners(run, turns)
        yield from refusals
        for leaf in found:
            note = run.note(leaf.id, NOTE)
            if note is None:
                yield refused("ramify shorten has not looked at the path")
                continue
            shorter = Shortened.from_json(note)
            for woven in weave(_kept(turns, leaf, shorter), lambda turn: said(turn) not in trained):
                trained.update(map(said, woven.turns))
                left_out = shorter.of - len(shorter.turns)
                row = row_of(run, leaf, woven) | {"stitched": True, "left_out": left_out}
                yield row | {"provenance": never_said(row["provenance"])}


def _kept(turns: Turns, leaf: Node, shorter: Shortened) -> list[Turn]:
    """The turns that are left, each told what those before it said and led to."""
    kept, told = list[Turn](), turns.path(leaf.id)[0].prompt
    for (node, number), seen in zip(shorter.turns, shorter.seen, strict=True):
        turn = turns.of(node)[number]
        kept.append(replace(turn, prompt=told, results=told_after(turn.answer, turn.step, seen)))
        told = kept[-1].told
    return kept
