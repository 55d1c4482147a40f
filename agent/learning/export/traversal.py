"""Rows of whole searches: each state that was visited before a solved one, in order, with the steps back in between.

A model trained on them learns to explore and to go back, not only the final path (exploratory learning of ExACT, arXiv
2410.02052).

Invariants: the calls of a row, carried out in order, lead through the files of the visited states: a row whose steps
back cannot be written as calls is skipped. No run had these conversations: `stitched` is true in each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.actions import Action
from agent.learning.export import AtLeastOne, Row, skipped
from agent.learning.export.hygiene import TAMPERED, flagged
from agent.learning.export.provenance import not_verbatim, provenance
from agent.learning.export.sft import winners
from agent.learning.export.turns import MERGE, Turn, Turns
from agent.learning.export.undoing import before_the_end, carried_out, done_again, notes_of, undone
from agent.models import Message
from agent.policy.chat.dialects import NATIVE, TEXT
from agent.prompts import render
from agent.run.run import Run
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree
from agent.search.continuing import continues


@dataclass(frozen=True, slots=True)
class Traversal:
    """One row for a run that went back before it solved its task. `visits` has the states in their order: those of a
    line of work follow each other, although others may have been found meanwhile."""

    states: AtLeastOne = 32
    """The maximum number of states in a row; runs that visited more are skipped."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns = Turns(run)
        leaves, skips = winners(run, turns)
        yield from skips
        for goal in sorted(leaves, key=lambda node: node.id)[:1]:
            visits = _visits(run.tree, goal)
            why = self._why_skipped(run, goal, visits)
            yield skipped(why) if why else _traversed(run, turns, visits)

    def _why_skipped(self, run: Run, goal: Node, visits: Sequence[Node]) -> str:
        if len(visits) == run.tree.depth(goal.id):
            return "the search never went back"
        if len(visits) > self.states:
            return "more states were visited than a row may have"
        if not all(node.steps for node in visits):
            return MERGE
        return TAMPERED if flagged(run) & {node.id for node in visits} else ""


def _visits(tree: Tree, goal: Node) -> list[Node]:
    """The states up to the goal, line of work by line of work in the order in which the lines were started."""
    lines, by_end = list[list[Node]](), dict[NodeId, list[Node]]()
    for node in tree:
        if not node.parents:
            continue
        line = by_end.pop(node.parents[0], None) if continues(tree, node.id) else None
        if line is None:
            line = []
            lines.append(line)
        line.append(node)
        by_end[node.id] = line
    last = next(number for number, line in enumerate(lines) if goal in line)
    before = [node for line in lines[:last] for node in line]
    return [*before, *lines[last][: lines[last].index(goal) + 1]]


def _traversed(run: Run, turns: Turns, visits: Sequence[Node]) -> Row:
    tree, goal, at = run.tree, visits[-1], run.tree.root
    first, taken = turns.of(visits[0].id)[0], list[Turn]()
    messages: list[Message] = list(first.prompt)
    for node in visits:
        parent = tree[node.parents[0]]
        if parent.id != at.id:
            way = _way(tree, turns, at, parent)
            if isinstance(way, str):
                return skipped(way)
            messages += _gone_back(at, parent, way, native=bool(first.tools))
        mine = list(turns.of(node.id)) if node is goal else before_the_end(list(turns.of(node.id)))
        messages += _with_results(taken[-1] if taken and parent.id == at.id else None, mine)
        taken, at = [*taken, *mine], node
    while messages[-1]["role"] != "assistant":
        messages.pop()
    return {
        "messages": messages,
        "tools": list(first.tools),
        "stitched": True,
        "visits": [node.id for node in visits],
        "provenance": not_verbatim(provenance(run, goal.id, taken, others=[node.id for node in visits])),
    }


def _way(tree: Tree, turns: Turns, at: Node, to: Node) -> tuple[Action, ...] | str:
    """The actions that lead from one state to another through their common ancestor; or the reason why there are
    none."""
    fork = tree.common_ancestor(at.id, to.id)
    up, down = (
        [turn for node in tree.path(end.id)[tree.depth(fork.id) + 1 :] for turn in turns.of(node.id)]
        for end in (at, to)
    )
    back, again = undone(before_the_end(up)) if up else (), done_again(down)
    if isinstance(back, str):
        return back
    return again if isinstance(again, str) else (*back, *again)


def _gone_back(at: Node, to: Node, way: Sequence[Action], *, native: bool) -> tuple[Message, ...]:
    """The messages that announce and carry out a step back; none if the files are the same."""
    if not way:
        return ()
    text = render("export_backtrack", notes=notes_of(at), to=to.label if to.parents else "").strip()
    return carried_out(f"back{at.id}", text, way, NATIVE if native else TEXT)


def _with_results(before: Turn | None, turns: Sequence[Turn]) -> Iterator[Message]:
    """The answers and results of some turns, with the messages between them."""
    for turn in turns:
        if before is not None and turn.prompt[: len(before.conversation)] == before.conversation:
            yield from turn.prompt[len(before.conversation) :]
        yield from (turn.answer, *turn.results)
        before = turn
