"""Predictions: patches by instance, in the file format of SWE-bench's tools.

A patch is bytes but JSON holds text: `model_patch` is the patch decoded as UTF-8, with each undecodable byte as a lone
surrogate U+DC80 to U+DCFF (`surrogateescape`). `.encode("utf-8", "surrogateescape")` gives the exact bytes back; a
reader that does not do this fails on such a patch, and cannot apply a changed one. The bytes themselves are in
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


@dataclass(frozen=True, slots=True)
class Prediction:
    """A solver's answer for one instance."""

    instance_id: str
    model_name_or_path: str
    patch: bytes
    """Empty: no answer."""
    mode: str = "unknown"
    """`hidden` or `revealed`; `unknown` if another program wrote the file."""

    def to_row(self) -> dict[str, str]:
        """The entry in the file. `mode` is our own field, which other tools ignore."""
        return {
            "instance_id": self.instance_id,
            "model_name_or_path": self.model_name_or_path,
            "model_patch": self.patch.decode("utf-8", "surrogateescape"),
            "mode": self.mode,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Prediction:
        """The prediction of an entry. Raises UsageError if it names no instance or its patch is not text."""
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
    """Write the predictions as a dict by instance id, whole or not at all."""
    rows = {p.instance_id: p.to_row() for p in predictions}
    write_atomically(path, json.dumps(rows, indent=1, sort_keys=True).encode() + b"\n")


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions of a file: a dict by instance id or a list (`.json`), or JSON lines (`.jsonl`).

    Raises:
        UsageError: the file has another format, an entry has no id, or an instance has two entries.
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
