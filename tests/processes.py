"""The processes that a process started."""

from __future__ import annotations

from pathlib import Path


def children(process: int) -> list[int]:
    """The process ids of the children of all its threads."""
    return [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
