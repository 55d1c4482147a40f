"""The processes that a process started."""

from __future__ import annotations

import os
from pathlib import Path

from sandboxes.forking.guest_bundle import LOADER


def guests(process: int) -> list[int]:
    """The process ids of its guests. It has other children, too: commands of git, which end at any moment."""
    return [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in _text(task / "children").split()
        if LOADER in _text(Path(f"/proc/{child}/cmdline"))
    ]


def _text(file: Path) -> str:
    try:
        return os.fsdecode(file.read_bytes())
    except OSError:  # the process has ended
        return ""
