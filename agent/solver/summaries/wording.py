"""Wording: how tests, states and commands are named in a summary, exactly as the journal has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.counting import first_of
from agent.run.tree.node import Node

COMMAND_CHARACTERS = 300
"""The maximum length of a command; the rest of a longer one is left out."""
LISTED = 5


def listed(names: Sequence[str]) -> str:
    """Return the first names, joined, and how many more there are."""
    return first_of(names, LISTED)


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The names without repeats, in order."""
    return tuple(dict.fromkeys(names))


def named(node: Node) -> str:
    """A state's number and label."""
    return f"state {node.id} ({node.label})" if node.label else f"state {node.id}"


def command(text: str) -> str:
    """A shell command, cut if it is long."""
    cut = f"{text[:COMMAND_CHARACTERS]} [...]"
    return cut if len(cut) < len(text) else text
