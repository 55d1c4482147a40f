"""Why a node exists: each selection on the path to it, with the numbers in the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from agent.engine.selection import PINNED
from agent.run.commands import require_node
from agent.run.events import Added, Event, Failed, Merged, Remeasured
from agent.run.tree.choice import Choice, Reason
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import NodeId
from agent.untrusted import escaped_lines

_ACTS = {"expand": "expanded", "fuse": "fused", "measure": "measured again"}
_OUTCOMES = {
    "added": " and made state {}",
    "merged": " and led to state {}",
    "measured": "",
    "failed": " and that failed",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """One selection and its outcome."""

    number: int
    """Its ordinal among the run's finished expansions, from 1."""
    expanded: NodeId
    outcome: Literal["added", "merged", "measured", "failed"]
    led_to: NodeId | None
    """The new node, or the known node with the same state; None: the expansion failed."""
    label: str
    """What was proposed, or why it failed."""
    choice: Choice | None
    """None: an older version of Ramify, which recorded no choices, wrote the journal."""


@dataclass(frozen=True, slots=True)
class Why:
    """All selections that concern a node."""

    node: NodeId
    path: tuple[NodeId, ...]
    """From the root to the node."""
    worth: Evaluation
    """The node's first evaluation."""
    selections: tuple[Selection, ...]
    """The selections that created the nodes of the path below the root, in order."""
    merged: tuple[Selection, ...]
    """Other expansions that led to the node's state."""
    measured: tuple[Selection, ...]
    """Further measurements of the node's state."""
    failed: tuple[Selection, ...]
    """Expansions of the node that failed."""

    def as_text(self) -> RenderableType:
        """The explanation for people."""
        parts: list[RenderableType] = [Text(f"state {self.node}, by way of {' > '.join(map(str, self.path))}")]
        parts.append(_worth(self.worth))
        parts += map(_draw, self.selections)
        if not self.selections:
            parts.append(Text("\nthe base state: no selection led to it"))
        for title, others in (
            ("other proposals that led here", self.merged),
            ("measured again", self.measured),
            ("attempts that failed", self.failed),
        ):
            if others:
                parts += [Text(f"\n{title}: {len(others)}"), *map(_draw, others)]
        return Group(*parts)


def explain(events: Iterable[Event], node: NodeId) -> Why:
    """Explain a node from the events of a journal.

    Raises:
        agent.errors.UsageError: the run has no such node.
    """
    recorded = list(events)
    nodes = {event.node.id: event.node for event in recorded if isinstance(event, Added)}
    require_node(node, len(nodes))
    ended = list(selections(recorded))
    created_by = {each.led_to: each for each in ended if each.outcome == "added"}
    path = [node]
    while parents := nodes[path[-1]].parents:
        path.append(parents[0])
    path.reverse()
    return Why(
        node,
        tuple(path),
        nodes[node].evaluation,
        selections=tuple(created_by[below] for below in path[1:]),
        merged=tuple(each for each in ended if each.outcome == "merged" and each.led_to == node),
        measured=tuple(each for each in ended if each.outcome == "measured" and each.led_to == node),
        failed=tuple(each for each in ended if each.outcome == "failed" and each.expanded == node),
    )


def selections(events: Iterable[Event]) -> Iterator[Selection]:
    """All finished expansions, in order."""
    number = 0
    for event in events:
        number += 1
        match event:
            case Added() if event.node.parents:
                node = event.node
                yield Selection(number, node.parents[0], "added", node.id, node.label, event.choice)
            case Merged():
                yield Selection(number, event.parent, "merged", event.node, event.label, event.choice)
            case Remeasured():
                yield Selection(number, event.node, "measured", event.node, "", event.choice)
            case Failed():
                yield Selection(number, event.node, "failed", None, event.reason, event.choice)
            case _:
                number -= 1


def _worth(evaluation: Evaluation) -> RenderableType:
    """The value, its terms, and the notes for later attempts."""
    terms = ", ".join(f"{name} {part:.4g}" for name, part in evaluation.parts.items())
    line = _text(f"worth {evaluation.value:.4g}{f': {terms}' if terms else ''}")
    return Group(line, Padding(_text(evaluation.notes), (0, 0, 0, 2), expand=False)) if evaluation.notes else line


def _draw(selection: Selection) -> RenderableType:
    act = _ACTS[selection.choice.act if selection.choice else "expand"]
    end = _OUTCOMES[selection.outcome].format(selection.led_to)
    headline = f"\nselection {selection.number}: state {selection.expanded} was {act}{_with(selection.choice)}{end}"
    line = _text(f"{headline}: {selection.label}" if selection.label else headline)
    return Group(line, Padding(_reasons(selection.choice), (0, 0, 0, 2), expand=False))


def _reasons(choice: Choice | None) -> RenderableType:
    if choice is None:
        return Text("the journal does not say why: an older version of ramify wrote it")
    if choice.order is not None:
        hint = f": {choice.hint}" if choice.hint else ""
        return _text(f"asked for by a person (order {choice.order}){hint}")
    pins = [Text(f"a person pinned state {r.node}: no other was considered") for r in choice.reasons if _pins(r)]
    reasons = [reason for reason in choice.reasons if not _pins(reason)]
    because = [_text(choice.because)] if choice.because else []
    return Group(*pins, *because, _table(reasons) if reasons else Text("the search gave no reasons"))


def _with(choice: Choice | None) -> str:
    return "" if choice is None or choice.other is None else f" with state {choice.other}"


def _pins(reason: Reason) -> bool:
    return PINNED in reason.terms


def _table(reasons: list[Reason]) -> Table:
    """A row for each decision, and below it a row for the best rejected node."""
    names = dict.fromkeys(["score"] if any("score" in r.terms for r in reasons) else [])
    for reason in reasons:
        names |= dict.fromkeys((*reason.terms, *(reason.rival_terms or ())))
    table = Table("", "state", "among", *(Column(_text(name)) for name in names), box=None, pad_edge=False)
    for reason in reasons:
        table.add_row("taken", str(reason.node), str(reason.among), *_numbers(reason.terms, names))
        if reason.rival is not None:
            table.add_row("rival", str(reason.rival), "", *_numbers(reason.rival_terms or {}, names))
    return table


def _numbers(terms: Mapping[str, float], names: Iterable[str]) -> Iterator[str]:
    return (f"{terms[name]:.4g}" if name in terms else "" for name in names)


def _text(text: str) -> Text:
    """Untrusted text in lines, with control characters escaped."""
    return Text(escaped_lines(text))
