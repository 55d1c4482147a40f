"""Layout: the names in the root of a repository, so that a model does not have to guess them."""

from __future__ import annotations

from agent.actions.excerpt import printable
from agent.run.memo import Memo
from sandboxes import Provider, Snapshot

LAYOUT = "layout"
"""The key of the note on the root node that holds the layout."""
NAMES = 40
LOOK_S = 30.0


def layout(provider: Provider, base: Snapshot, memo: Memo) -> str:
    """The names in the root of the base state and in its `src`, folders with a slash; read once per run.

    Raises:
        sandboxes.SandboxError: the base state cannot be read.
    """

    def find() -> str:
        with provider.at(base) as box:
            listed = box.exec(["sh", "-c", "ls -dp -- * src/* 2>/dev/null"], timeout_s=LOOK_S)
        names = [name for name in printable(listed.stdout).split("\n")[:-1] if "__pycache__" not in name]
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        return " ".join(names[:NAMES]) + more

    return str(memo(LAYOUT, find))
