"""The choice of new work: the orders of people come first, then lines of work that have not ended, then the search.

Expansions that a killed process left and states of other runs come before it (`Engine.start`).
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
"""The name of the term of a reason that is a pin."""


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
    """What to do next: the oldest fork order that waits and is not in flight, else what the search selects. Below a pin
    it selects as if the pinned node were the root, else in the `visible` part of the tree.

    `continuing`: a line of work that has not ended is continued before the search is asked. `lines`: how many may be in
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
