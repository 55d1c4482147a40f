"""The text written at some nodes of a run, as recorded in its journal: edits and whole files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache

from agent.actions import Edit, Write
from agent.run.run import Run
from agent.run.tree.node import NodeId


def written(run: Run, nodes: Iterable[NodeId]) -> str:
    """The new text of all edits at these nodes, in the order of the nodes."""
    return "\n".join(new for _, new in _replaced(run, nodes))


def added(run: Run, nodes: Iterable[NodeId]) -> str:
    """As `written`, without the lines that existed before."""
    return "\n".join(line for old, new in _replaced(run, nodes) for line in _new_lines(old, new))


def _replaced(run: Run, nodes: Iterable[NodeId]) -> Iterator[tuple[str, str]]:
    """The old and new text of each edit; the old text of a file written whole is unknown, and given as empty."""
    for action in (action for node in sorted(nodes) for action in run.tree[node].actions):
        if isinstance(action, Edit):
            yield from ((replacement.old, replacement.new) for replacement in action.replacements)
        elif isinstance(action, Write):
            yield "", action.content


@lru_cache(maxsize=4096)
def _new_lines(old: str, new: str) -> tuple[str, ...]:
    """The new lines of an edit. Cached, as an edit is on the path to every state below it."""
    before, after = old.splitlines(), new.splitlines()
    parts = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return tuple(line for kind, _, _, start, end in parts if kind != "equal" for line in after[start:end])
