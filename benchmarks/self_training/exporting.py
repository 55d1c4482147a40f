"""Exports the training rows of a round, once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.learning.export.dataset import ExportSettings
from agent.learning.export.dataset import export as write
from agent.learning.export.duplicates import Duplicates
from agent.learning.export.hygiene import Hygiene
from agent.learning.export.registry import make


def export(
    runs: Sequence[Path], form: str, out: Path, near: float | None = 0.9, easy_first: bool = False
) -> dict[str, Any]:
    """Export the rows of these runs to `out`, unless they are there already, and return the manifest. `near` is as in
    `Duplicates`, `easy_first` as in `ExportSettings`."""
    manifest = out / "manifest.json"
    if manifest.exists():
        existing: dict[str, Any] = json.loads(manifest.read_bytes())
        return existing
    shutil.rmtree(out, ignore_errors=True)  # the remains of an export that was killed
    hygiene = Hygiene(duplicates=Duplicates(near))
    return write(runs, ExportSettings(form, make(form, {}), hygiene=hygiene, easy_first=easy_first), out)
