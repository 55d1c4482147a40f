"""Checks that the disks a batch fills have enough free space before an instance is started."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from sandboxes import SandboxError
from sandboxes.forking.disk_space import free_bytes

GIB = 1 << 30


def shortage(places: Iterable[Path], least_gib: float) -> str:
    """Return which disk of these places has too little space free, and what to do; empty if all have enough."""
    for place in places:
        if (free_gib := free_bytes(place) / GIB) < least_gib:
            return (
                f"the disk of {place} has {free_gib:.2f} GiB free, and with less than {least_gib:g} GiB no instance is "
                "started; free some space (`ramify clean` shows what Ramify keeps, --prune-images keeps fewer images), "
                "use another disk (--out), or give another --min-free"
            )
    return ""


def output_folders(out: Path, images: Iterable[str | None], kind: str) -> tuple[Path, ...]:
    """The folders that a batch writes to: its own, and Docker's if the kind of sandbox or an image needs an engine that
    is on this machine."""
    if kind == "namespace" or (kind == "auto" and not any(images)):
        return (out,)
    from sandboxes.docker.client import connect
    from sandboxes.docker.images import root_of

    try:
        with closing(connect()) as client:
            root = root_of(client)
    except SandboxError:
        return (out,)  # the sandbox reports it when it needs the engine
    return (out, root) if root is not None else (out,)
