"""Rows for unpaired preference training: each answer, and whether it led to a solved state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from agent.learning.export import Row
from agent.learning.export.provenance import provenance
from agent.learning.export.turns import Turn, Turns, answer_key
from agent.run.credit import node_credit, outcome
from agent.run.run import Run


@dataclass(frozen=True, slots=True)
class Kto:
    """One row for each answer (`prompt`, `completion`, `label`). The same answer to the same prompt, in several
    expansions or runs, is one row of each run; it is desirable if it led to a solved state in any of them."""

    needs_all_runs: ClassVar[bool] = True
    _good: set[str] = field(default_factory=set, init=False, repr=False)
    """The answers that led to a solved state in any run."""

    def collect(self, run: Run) -> None:
        """Collect the good answers of a run."""
        turns, credit = Turns(run), node_credit(run.tree, outcome(run))
        good = (turn for node in run.tree if credit[node.id].solved for turn in turns.of(node.id))
        self._good.update(map(answer_key, good))

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, rows = Turns(run), dict[str, list[Turn]]()
        for node in run.tree:
            for turn in turns.of(node.id):
                rows.setdefault(answer_key(turn), []).append(turn)
        for name, same in rows.items():
            turn, nodes = same[0], [other.node for other in same]
            yield {
                "prompt": list(turn.prompt),
                "completion": [turn.answer],
                "label": name in self._good,
                "tools": list(turn.tools),
                "provenance": provenance(run, turn.node, [turn], others=nodes),
            }
