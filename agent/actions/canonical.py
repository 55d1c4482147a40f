"""The canonical form of actions: the same for those that make the same of the same state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePosixPath

from agent.actions.types import Action, Edit, Shell, Write

__all__ = ["canonical"]


def canonical(actions: Sequence[Action]) -> str:
    """A digest; empty where nothing is edited or written, or a command is run, of which only running it tells.

    Actions on different files may come in any order, and those that only look count for nothing. `./a//b` is `a/b`.
    """
    files: dict[str, list[dict[str, object]]] = {}
    for action in actions:
        if isinstance(action, Shell):
            return ""
        if isinstance(action, (Edit, Write)):
            path = str(PurePosixPath(action.path))
            files.setdefault(path, []).append({**asdict(action), "path": path})
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest() if files else ""
