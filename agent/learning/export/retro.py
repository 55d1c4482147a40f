"""Rows of solved paths without their detours, as `ramify shorten` found them: `messages` and `tools`, as in `sft`.

Invariant: a row was carried out again and solved the task. Its answers are recorded ones, and the results of its calls
are those of the shortened path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.analysis.minimize import NOTE, Shortened
from agent.learning.export import Row, skipped
from agent.learning.export.provenance import not_verbatim
from agent.learning.export.sft import row_of, winners
from agent.learning.export.turns import Turn, Turns, answer_key, results_after
from agent.learning.export.weaving import weave
from agent.run.run import Run
from agent.run.tree.node import Node


@dataclass(frozen=True, slots=True)
class Retro:
    """One row for each shortened path. An answer at the beginning of several paths has the loss on only in the first of
    them. `left_out` is the number of turns left out. Measurements between the states of the path are not in the row."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, trained = Turns(run), set[str]()
        leaves, skips = winners(run, turns)
        yield from skips
        for leaf in leaves:
            note = run.note(leaf.id, NOTE)
            if note is None:
                yield skipped("ramify shorten has not looked at the path")
                continue
            shorter = Shortened.from_json(note)
            for woven in weave(_kept(turns, leaf, shorter), lambda turn: answer_key(turn) not in trained):
                trained.update(map(answer_key, woven.turns))
                left_out = shorter.of - len(shorter.turns)
                row = row_of(run, leaf, woven) | {"stitched": True, "left_out": left_out}
                yield row | {"provenance": not_verbatim(row["provenance"])}


def _kept(turns: Turns, leaf: Node, shorter: Shortened) -> list[Turn]:
    """The turns that are left, each with a prompt of the kept turns before it and their results."""
    kept, prompt = list[Turn](), turns.path(leaf.id)[0].prompt
    for (node, number), seen in zip(shorter.turns, shorter.seen, strict=True):
        turn = turns.of(node)[number]
        kept.append(replace(turn, prompt=prompt, results=results_after(turn.answer, turn.step, seen)))
        prompt = kept[-1].conversation
    return kept
