"""Free disk space that a batch needs before it begins an instance."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sandboxes import SandboxError, StoreFull
from sandboxes.forking.disk_space import free_bytes

__all__ = ["GIB", "Floor", "places"]

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Floor:
    """The bytes that must be free on the disk of each place; 0: not checked."""

    places: tuple[Path, ...]
    bytes: int

    def shortage(self) -> str:
        """Which disk has less, and what to do about it; empty: none has."""
        for place in self.places:
            if (free := free_bytes(place)) < self.bytes:
                return (
                    f"the disk of {place} has {free / GIB:.2f} GiB free, and with less than {self.bytes / GIB:g} GiB "
                    "no instance is begun; free some (`ramify clean` shows what is ours, --prune-images keeps fewer "
                    "images), use another disk (--out), or give another --min-free"
                )
        return ""

    def require(self) -> None:
        """Raise sandboxes.StoreFull if a disk has less."""
        if said := self.shortage():
            raise StoreFull(said)


def places(out: Path, images: Iterable[str | None], kind: str) -> tuple[Path, ...]:
    """Where a batch writes: its own folder, and that of a Docker engine on this machine if one is used."""
    if kind == "namespace" or (kind == "auto" and not any(images)):
        return (out,)
    from sandboxes.docker.client import connect
    from sandboxes.docker.images import root_of

    try:
        with closing(connect()) as client:
            root = root_of(client)
    except SandboxError:
        return (out,)  # whoever needs the engine will say so
    return (out, root) if root is not None else (out,)
