"""States on the way to a node: frozen by an expansion or a verification, and gone with it unless a node holds them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sandboxes import Provider, Sandbox, SandboxError, Snapshot

__all__ = ["TemporarySnapshots", "temporary_snapshots"]

log = logging.getLogger(__name__)


class TemporarySnapshots:
    """The states that one piece of work has frozen so far. Used by one thread."""

    def __init__(self) -> None:
        self._made: list[Snapshot] = []

    def freeze(self, box: Sandbox) -> Snapshot:
        """The fork's state, discarded at the end of the work unless it is kept."""
        return self.add(box.snapshot())

    def add(self, state: Snapshot) -> Snapshot:
        """Look after a state that was frozen elsewhere."""
        self._made.append(state)
        return state

    def keep(self, state: Snapshot) -> None:
        """From now on somebody else looks after that state. Called before it is recorded, so that none is lost."""
        self._made = [made for made in self._made if made != state]

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(tuple(self._made))


@contextmanager
def temporary_snapshots(provider: Provider) -> Iterator[TemporarySnapshots]:
    """Discards, at the end of the block, what was frozen in it and not kept. No lease on it may be left by then."""
    made = TemporarySnapshots()
    try:
        yield made
    finally:
        try:
            provider.discard(*made)
        except SandboxError as error:
            log.info("states that nobody needs stay for now: %s", error)
