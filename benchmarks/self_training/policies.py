"""Policies: the registry of what was learned, from what, and how it did. One JSON line a version, never rewritten.

Law: the present policy is the newest one that was kept; to roll back is to keep nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from agent.errors import UsageError
from benchmarks.data.jsonl_ledger import Ledger, read_rows

__all__ = ["FIRST", "Policy", "Registry"]

Kind = Literal["mutate", "uniform", "counts", "model"]


@dataclass(frozen=True, slots=True)
class Policy:
    """One version of the policy `edit`."""

    name: str
    """`v0`, `v1`, ..."""
    kind: Kind
    path: str = ""
    """A file of counts, or a folder with a checkpoint; relative to the registry."""
    parent: str = ""
    """The version that the searches were made with which it was learned from."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Which searches and rows it was learned from."""
    scores: Mapping[str, Any] = field(default_factory=dict)
    """Beside its parent (`scores.Better.to_json`)."""
    kept: bool = True


FIRST = Policy("v0", "mutate")
"""What there is before anything was learned."""


class Registry:
    """The versions in a folder. One process at a time.

    Raises:
        UsageError: another process holds it, or it is not as Ramify writes it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ledger = Ledger(folder / "policies.jsonl")
        try:
            self.versions = _read(folder / "policies.jsonl")
        except UsageError:
            self._ledger.close()
            raise
        if not self.versions:
            self._ledger.append(asdict(FIRST))
            self.versions.append(FIRST)

    def close(self) -> None:
        """Let another process hold it."""
        self._ledger.close()

    @property
    def present(self) -> Policy:
        """The newest version that was kept."""
        return next((each for each in reversed(self.versions) if each.kept), FIRST)

    @property
    def next_name(self) -> str:
        """Of the version that is learned next."""
        return f"v{len(self.versions)}"

    def add(self, policy: Policy) -> None:
        """Record a version. Raises UsageError where its name is not the next one."""
        if policy.name != self.next_name:
            raise UsageError(f"{self.folder}: {policy.name} is recorded out of order: {self.next_name} is next")
        self._ledger.append(asdict(policy))
        self.versions.append(policy)


def _read(file: Path) -> list[Policy]:
    """All of them, in turn: a folder is named after each, so that none may be missing."""
    found = list(read_rows(file, _policy))
    for number, each in enumerate(found):
        if each.name != f"v{number}":
            raise UsageError(f"{file} has {each.name} where v{number} should be: put the lines back as they were")
    return found


def _policy(row: dict[str, Any]) -> Policy:
    policy = Policy(**row)
    if policy.kind not in get_args(Kind):
        raise ValueError(f"kind {policy.kind!r} is not one of {', '.join(get_args(Kind))}")
    return policy
