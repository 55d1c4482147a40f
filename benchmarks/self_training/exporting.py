"""Exporting: the rows of a round, made once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.learning.export.dataset import Order
from agent.learning.export.dataset import export as write
from agent.learning.export.duplicates import Duplicates
from agent.learning.export.hygiene import Hygiene
from agent.learning.export.registry import make

__all__ = ["export"]


def export(runs: Sequence[Path], form: str, out: Path, near: float | None = 0.9) -> dict[str, Any]:
    """The manifest of the rows of these runs, of those in `out` where they are there; `near` as of `Duplicates`."""
    manifest = out / "manifest.json"
    if manifest.exists():
        known: dict[str, Any] = json.loads(manifest.read_bytes())
        return known
    shutil.rmtree(out, ignore_errors=True)  # what a kill left of an export begun before
    return write(runs, Order(form, make(form, {}), hygiene=Hygiene(duplicates=Duplicates(near))), out)
