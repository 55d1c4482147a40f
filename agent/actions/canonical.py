"""The canonical form of actions: equal for actions that turn the same state into the same result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import PurePosixPath

from agent.actions.types import Action, Edit, Search, Shell, View, Write


def canonical(actions: Sequence[Action]) -> str:
    """A digest of the edits; empty if nothing is edited, or if a command is run, since its effect is unknown.

    The order of actions on different files does not matter, nor do actions that only read. `./a//b` equals `a/b`.
    """
    files: dict[str, list[dict[str, object]]] = {}
    for action in map(respelled, actions):
        if isinstance(action, Shell):
            return ""
        if isinstance(action, (Edit, Write)):
            files.setdefault(action.path, []).append(_fields(action))
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest() if files else ""


def _fields(action: Edit | Write) -> dict[str, object]:
    """The fields as older journals hold them, from before an edit could hold several replacements."""
    return {key: value for key, value in asdict(action).items() if value or key not in ("replace_all", "more")}


def respelled(action: Action) -> Action:
    """The action in one spelling: `a/b` for `./a//b`, single spaces in commands, the default time limit."""
    match action:
        case Shell():
            return Shell(" ".join(action.command.split()))
        case View() | Search() | Edit() | Write():
            return replace(action, path=str(PurePosixPath(action.path)))
        case _:
            return action
