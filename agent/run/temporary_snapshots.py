"""Temporary snapshots: states that a piece of work takes along the way. They are discarded at its end unless a node
holds them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Self

from sandboxes import Provider, Sandbox, SandboxError, Snapshot

log = logging.getLogger(__name__)


class TemporarySnapshots:
    """A context manager. At the end of its block, snapshots that were taken in it and not kept are discarded. For one
    thread.

    No lease on such a snapshot may be open at the end of the block.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._snapshots: list[Snapshot] = []

    def take(self, box: Sandbox) -> Snapshot:
        """Take a snapshot of the fork, which is discarded at the end of the block unless it is kept."""
        return self.add(box.snapshot())

    def add(self, snapshot: Snapshot) -> Snapshot:
        """Also discard this snapshot, which was taken elsewhere, unless it is kept."""
        self._snapshots.append(snapshot)
        return snapshot

    def keep(self, snapshot: Snapshot) -> None:
        """Keep this snapshot. Call it before its node is recorded, so that no node lacks its state."""
        self._snapshots = [other for other in self._snapshots if other != snapshot]

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(tuple(self._snapshots))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._provider.discard(*self._snapshots)
        except SandboxError as failure:
            log.info("temporary snapshots could not be discarded: %s", failure)
