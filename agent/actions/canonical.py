"""The canonical form of actions: the same for those that make the same of the same state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import PurePosixPath

from agent.actions.types import Action, Edit, Search, Shell, View, Write

__all__ = ["canonical", "respelled"]


def canonical(actions: Sequence[Action]) -> str:
    """A digest; empty where nothing is edited or written, or a command is run, of which only running it tells.

    Actions on different files may come in any order, and those that only look count for nothing. `./a//b` is `a/b`.
    """
    files: dict[str, list[dict[str, object]]] = {}
    for action in map(respelled, actions):
        if isinstance(action, Shell):
            return ""
        if isinstance(action, (Edit, Write)):
            files.setdefault(action.path, []).append(_fields(action))
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest() if files else ""


def _fields(action: Edit | Write) -> dict[str, object]:
    """As journals have them from before an edit could hold several replacements."""
    return {key: value for key, value in asdict(action).items() if value or key not in ("replace_all", "more")}


def respelled(action: Action) -> Action:
    """The same for two actions that differ in spelling only: `./a//b` or `a/b`, white space, how long is waited."""
    match action:
        case Shell():
            return Shell(" ".join(action.command.split()))
        case View() | Search() | Edit() | Write():
            return replace(action, path=str(PurePosixPath(action.path)))
        case _:
            return action
