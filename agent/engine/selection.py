"""Chooses new work: orders of people come first, then lines of work that have not ended, then the search.

The engine itself gives precedence to expansions that a killed process left, and to states of other runs
(`Engine.next_expansion`).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from random import Random

from agent.run.commands import Steering
from agent.run.tree.choice import REPAIR, Choice, Reason
from agent.run.tree.part import TreePart
from agent.run.tree.tree import Tree
from agent.search import Search
from agent.search.continuing import continued

PINNED = "pinned"
"""The term of a reason that stands for a pin."""


def choose(
    tree: Tree,
    steering: Steering,
    search: Search,
    rng: Random,
    in_flight: Container[int | None] = (),
    visible: TreePart | None = None,
    *,
    continuing: bool = False,
    lines: int | None = None,
) -> Choice | None:
    """Choose what to do next: the oldest waiting fork order that is not in flight, else what the search selects. If a
    node is pinned, the search sees only the part of the tree below it; otherwise only the `visible` part.

    `continuing`: continue a line of work that has not ended before asking the search. `lines`: how many may be in
    flight at once; None: as many as there are workers."""
    for number, order in steering.waiting(tree):
        if number not in in_flight:
            reason = Reason(order.node, {"order": float(number)})
            kind = REPAIR if order.by == "diagnosis" else ""
            return Choice(order.node, kind=kind, hint=order.hint, order=number, reasons=(reason,))
    pin = steering.pin(tree)
    part = visible if pin in (None, tree.root.id) else tree.view(("below", pin), lambda whole: TreePart(whole, pin))
    seen = tree if part is None else part
    choice = continued(seen) if continuing else None
    if choice is None and (lines is None or tree.in_flight < lines):
        choice = search.select(seen, rng)
    if choice is None:
        return None
    choice = choice if part is None else part.in_whole(choice)
    return choice if pin is None else replace(choice, reasons=(Reason(pin, {PINNED: 1.0}), *choice.reasons))
