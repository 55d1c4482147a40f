"""Predictions: patches by instance, in the file that SWE-bench tools read.

A patch is bytes and JSON holds text: `model_patch` is the patch as UTF-8, each byte that is not UTF-8 as a lone
surrogate U+DC80 to U+DCFF (`surrogateescape`). `.encode("utf-8", "surrogateescape")` gives the exact bytes back; a
reader that does not know this fails on such a patch and never applies a changed one. The bytes themselves are in
`<instance_id>/patch.diff` beside the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.files import write_atomically
from benchmarks.data.jsonl_ledger import read_lines

__all__ = ["Prediction", "read_predictions", "write_predictions"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a solver answered."""

    instance_id: str
    model_name_or_path: str
    patch: bytes
    """Empty: no answer."""
    mode: str = "unknown"
    """`hidden` or `revealed`; `unknown` where the file came from elsewhere."""

    def to_row(self) -> dict[str, str]:
        """The entry of the file; `mode` is ours and ignored by others."""
        return {
            "instance_id": self.instance_id,
            "model_name_or_path": self.model_name_or_path,
            "model_patch": self.patch.decode("utf-8", "surrogateescape"),
            "mode": self.mode,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Prediction:
        """Raises UsageError when the entry names no instance or its patch is not text."""
        patch = row.get("model_patch") or ""
        if not isinstance(row.get("instance_id"), str) or not isinstance(patch, str):
            raise UsageError("a prediction needs an instance_id and a model_patch, both text")
        return cls(
            instance_id=row["instance_id"],
            model_name_or_path=str(row.get("model_name_or_path", "")),
            patch=patch.encode("utf-8", "surrogateescape"),
            mode=str(row.get("mode", "unknown")),
        )


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write a dict by instance id, whole or not at all."""
    rows = {p.instance_id: p.to_row() for p in predictions}
    write_atomically(path, json.dumps(rows, indent=1, sort_keys=True).encode() + b"\n")


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions of a file: a dict by instance id or a list (`.json`), or an object a line (`.jsonl`).

    Raises:
        UsageError: not such a file, an entry without an id, or two entries for one instance.
    """
    predictions = [Prediction.from_row(row) for row in _rows(path)]
    seen: set[str] = set()
    for prediction in predictions:
        if prediction.instance_id in seen:
            raise UsageError(f"{path} has two predictions for {prediction.instance_id}")
        seen.add(prediction.instance_id)
    return predictions


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        if path.suffix == ".jsonl":
            return list(read_lines(path))
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read predictions from {path}: {error}") from error
    if isinstance(data, dict):
        data = [{"instance_id": key, **row} if isinstance(row, dict) else row for key, row in data.items()]
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise UsageError(f"{path} is neither a dict of predictions by instance id nor a list of them")
    return data
