"""Accepted solutions of a task: how similar a change is to the nearest of several.

KAT-Coder rewards a rollout by several ground truths ("KAT-Coder Technical Report"). The similarity of two changes is
that of SWE-RL (arXiv 2502.18449), the ratio of `difflib.SequenceMatcher`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from agent.errors import UsageError
from agent.measure.diffs import parse
from agent.measure.protection import Protection

PATCHES = ("patch", "model_patch")
"""The fields of a row that may hold its patch, as in SWE-bench's instances and in its predictions."""
_IS_TEST = Protection(frozenset(), (), ()).is_test

Change = tuple[tuple[str, str], ...]
"""A path with each line that is removed or added there, in order; tests are left out."""


@dataclass(frozen=True, slots=True)
class AcceptedPatches:
    """The changes that were accepted for each task, by its id."""

    by_task: dict[str, list[Change]] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> AcceptedPatches:
        """Read JSON Lines with an `instance_id` and a `patch` or `model_patch` each. A task may have several rows.

        Raises:
            UsageError: the file cannot be read, or a line is not such a row.
        """
        found: dict[str, list[Change]] = defaultdict(list)
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"references={file}: {error}") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                task, patch = _row(line, f"{file}:{number}")
                found[task].append(change_of(patch.encode("utf-8", "surrogateescape")))
        if not found:
            raise UsageError(f"references={file}: the file has no rows")
        return cls(dict(found))

    def nearest(self, task: str, patch: bytes) -> float:
        """The similarity in [0, 1] of a patch to the nearest solution of the task; 1 if it makes the same change.

        Raises:
            UsageError: the task has no accepted solution.
        """
        if task not in self.by_task:
            raise UsageError(f"references: none for the task {task!r}; add a row with this instance_id")
        change = change_of(patch)
        return max(similarity(change, other) for other in self.by_task[task])


def change_of(patch: bytes) -> Change:
    """The lines that a git patch removes and adds outside of tests."""
    return tuple(
        (file.path, line)
        for file in sorted(parse(patch), key=lambda file: file.path)
        if not _IS_TEST(file.path)
        for line in (*(f"-{text}" for text in file.removed), *(f"+{text}" for text in file.added.values()))
    )


def similarity(one: Change, other: Change) -> float:
    """The ratio of the characters that two changes have in common, in [0, 1]."""
    return SequenceMatcher(None, _text(one), _text(other), autojunk=False).ratio()


def _text(change: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{path}: {line}" for path, line in change)


def _row(line: str, where: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON ({error})") from error
    task = row.get("instance_id") if isinstance(row, dict) else None
    patch = next((row[name] for name in PATCHES if row.get(name)), None) if isinstance(row, dict) else None
    if not isinstance(task, str) or not isinstance(patch, str):
        raise UsageError(f"{where}: a row needs an instance_id and a patch (or model_patch), both of them text")
    return task, patch
