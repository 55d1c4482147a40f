"""The registry of policies: what was learned, from which data, and how well it did. It is a file with a JSON line for
each version, which is never rewritten.

Invariant: the present policy is the newest one that was kept. A rollback is a version that is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from agent.errors import UsageError
from benchmarks.data.jsonl_ledger import Ledger, read_rows

Kind = Literal["mutate", "uniform", "counts", "model", "chat"]


@dataclass(frozen=True, slots=True)
class Policy:
    """One version of the policy `edit`, or of a chat policy."""

    name: str
    """`v0`, `v1`, ..."""
    kind: Kind
    path: str = ""
    """A file of counts or a folder with a checkpoint, relative to the registry; absolute for the first chat policy."""
    parent: str = ""
    """The version that made the searches from which this one was learned."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The searches and rows that it was learned from."""
    scores: Mapping[str, Any] = field(default_factory=dict)
    """The comparison with its parent (`scores.Better.to_json`)."""
    kept: bool = True


FIRST = Policy("v0", "mutate")
"""The policy before anything was learned."""


class Registry:
    """The versions in a folder, for one process at a time.

    Raises:
        UsageError: another process holds the registry, it is not as Ramify writes it, or it began with another policy
            than `first`.
    """

    def __init__(self, folder: Path, first: Policy = FIRST) -> None:
        self.folder = folder
        self._ledger = Ledger(folder / "policies.jsonl")
        try:
            self.versions = _read(folder / "policies.jsonl")
            _require_begun_with(first, self.versions[:1], folder)
        except UsageError:
            self._ledger.close()
            raise
        if not self.versions:
            self._ledger.append(asdict(first))
            self.versions.append(first)

    def close(self) -> None:
        """Release the registry for other processes."""
        self._ledger.close()

    @property
    def present(self) -> Policy:
        """The newest version that was kept."""
        return next((policy for policy in reversed(self.versions) if policy.kept), self.versions[0])

    @property
    def next_name(self) -> str:
        """The name of the next version."""
        return f"v{len(self.versions)}"

    def add(self, policy: Policy) -> None:
        """Record a version. Raises UsageError unless it has the next name."""
        if policy.name != self.next_name:
            raise UsageError(f"{self.folder}: {policy.name} is recorded out of order: {self.next_name} is next")
        self._ledger.append(asdict(policy))
        self.versions.append(policy)


def _require_begun_with(first: Policy, begun: list[Policy], folder: Path) -> None:
    for other in begun:
        if (other.kind, other.path) != (first.kind, first.path):
            was, now = (f"{policy.kind} {policy.path}".rstrip() for policy in (other, first))
            raise UsageError(
                f"{folder} began with the policy {was}, not with {now}: name another folder, or that policy"
            )


def _read(file: Path) -> list[Policy]:
    """All versions, in order. None may be missing, since folders are named after them."""
    policies = list(read_rows(file, _policy))
    for number, policy in enumerate(policies):
        if policy.name != f"v{number}":
            raise UsageError(f"{file} has {policy.name} where v{number} should be: restore the lines as they were")
    return policies


def _policy(row: dict[str, Any]) -> Policy:
    policy = Policy(**row)
    if policy.kind not in get_args(Kind):
        raise ValueError(f"kind {policy.kind!r} is not one of {', '.join(get_args(Kind))}")
    return policy
