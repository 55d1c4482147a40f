"""Rows that think ahead: at a decision, the outcome of each explored branch, then the choice of the best.

The words replace the search that produced them (after ProAct's first stage); they state only measured outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from agent.learning.export import GOAL_UNKNOWN, Row, skipped
from agent.learning.export.provenance import not_verbatim, provenance
from agent.learning.export.turns import Turn, Turns
from agent.prompts import render
from agent.run.credit import Credit, goals_known, node_credit, outcome
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.untrusted import visible

LABEL_CHARS = 120


@dataclass(frozen=True, slots=True)
class Lookahead:
    """One row (`prompt`, `completion`) for each node with children that lead to a solved state and others that do not.
    The child with the largest share of solved leaves is chosen."""

    chars: Annotated[int, Field(ge=200)] = 2000
    """The maximum number of characters before the choice; the worst branches are left out first."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, credit = Turns(run), node_credit(run.tree, outcome(run))
        for parent in run.tree:
            children = [child for child in run.tree.children(parent.id) if turns.of(child.id)]
            if {bool(credit[child.id].solved) for child in children} != {True, False}:
                continue
            if not goals_known(run):
                yield skipped(GOAL_UNKNOWN)
                continue
            ranked = sorted(children, key=lambda child: (-credit[child.id].value, -child.value, child.id))
            yield self._row(run, ranked, turns.of(ranked[0].id)[0], credit)

    def _row(self, run: Run, ranked: Sequence[Node], chosen: Turn, credit: Mapping[NodeId, Credit]) -> Row:
        text, shown = self._words(run, ranked, credit)
        words = "\n\n".join(filter(None, (text, str(chosen.answer.get("content") or ""))))
        answer: dict[str, Any] = {**chosen.answer, "content": words}
        return {
            "prompt": list(chosen.prompt),
            "completion": [answer],
            "tools": list(chosen.tools),
            "branches": [{"node": node.id, "value": credit[node.id].value} for node in shown],
            "provenance": not_verbatim(provenance(run, ranked[0].id, [chosen], others=[node.id for node in shown])),
        }

    def _words(self, run: Run, ranked: Sequence[Node], credit: Mapping[NodeId, Credit]) -> tuple[str, Sequence[Node]]:
        """The text with as many branches as fit, and these branches, in the order in which they were tried."""
        for count in range(len(ranked), 0, -1):
            shown = sorted(ranked[:count], key=lambda node: node.id)
            branches = [f"{_name(node)}: {_led_to(run, node, credit[node.id])}" for node in shown]
            left_out, chosen = len(ranked) - count, _name(ranked[0])
            text = render("export_lookahead", branches=branches, left_out=left_out, chosen=chosen).strip()
            if len(text) <= self.chars:
                break
        return text, shown


def _name(node: Node) -> str:
    return visible(" ".join((node.label or f"attempt {node.id}").split()))[:LABEL_CHARS]


def _led_to(run: Run, node: Node, credit: Credit) -> str:
    if credit.solved:
        return "solved" if credit.leaves == 1 else f"{credit.solved} of {credit.leaves} ways on from it are solved"
    best = run.tree.value_max(node.id)
    none = "not solved" if credit.leaves == 1 else f"none of {credit.leaves} ways on from it is solved"
    return f"{none}, at best {best:.2f} of 1"
