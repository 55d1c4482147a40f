"""Wording: how tests, nodes and commands are named in a summary. All that is named is in the journal as it stands."""

from __future__ import annotations

from collections.abc import Sequence

from agent.run.tree.node import Node

__all__ = ["command", "listed", "named"]

COMMAND_CHARACTERS = 300
"""Of a longer command the rest is left out."""
LISTED = 5


def listed(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")


def named(node: Node) -> str:
    """A node by its number and what was done."""
    return f"node {node.id} ({node.label})" if node.label else f"node {node.id}"


def command(given: str) -> str:
    """A shell command, cut to its beginning where it is long."""
    cut = f"{given[:COMMAND_CHARACTERS]} [...]"
    return cut if len(cut) < len(given) else given
