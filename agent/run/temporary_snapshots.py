"""Temporary snapshots: states that a piece of work takes on its way, discarded at its end unless a node holds them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Self

from sandboxes import Provider, Sandbox, SandboxError, Snapshot

log = logging.getLogger(__name__)


class TemporarySnapshots:
    """A block at the end of which the snapshots that were taken in it and not kept are discarded. For one thread.

    No lease on such a snapshot may be open at the end of the block.
    """

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._snapshots: list[Snapshot] = []

    def take(self, box: Sandbox) -> Snapshot:
        """A snapshot of the fork, discarded at the end of the block unless it is kept."""
        return self.add(box.snapshot())

    def add(self, snapshot: Snapshot) -> Snapshot:
        """Discard this snapshot as well, which was taken elsewhere."""
        self._snapshots.append(snapshot)
        return snapshot

    def keep(self, snapshot: Snapshot) -> None:
        """Do not discard this snapshot. Called before its node is recorded, so that no node lacks its state."""
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
