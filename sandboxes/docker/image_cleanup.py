"""Removes an image with everything derived from it: set-ups, environments, states, and the volume with its files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandboxes.docker.client import OUR_IMAGES, has_image, removed, translated
from sandboxes.docker.images import base_volume_name, plain_name

if TYPE_CHECKING:
    from docker import DockerClient


_STATES = "ramify-state:"


def here(client: DockerClient, name: str) -> bool:
    """Whether the engine has an image of that name.

    Raises:
        SandboxUnavailable: the engine failed.
    """
    with translated():
        return has_image(client, name)


def remove_with_derived(client: DockerClient, name: str, stores: Path) -> list[str]:
    """Remove an image and what Ramify derived from it, and return the names of what was removed.

    States are removed only if their store is below `stores`. Whatever is in use is kept.

    Raises:
        SandboxUnavailable: the engine failed.
    """
    if not here(client, name):
        return []
    with translated():
        image = str(client.images.get(name).id)
        to_remove = [tag for tag in _derived(client, image) if _ours(client, tag, stores)]
        volume_name = base_volume_name(image)
        volumes = [other for other in client.volumes.list(filters={"name": volume_name}) if other.name == volume_name]
        gone = [tag for tag in [*to_remove, name] if removed(partial(client.images.remove, tag))]
        return gone + [str(volume.name) for volume in volumes if removed(volume.remove)]


def _ours(client: DockerClient, tag: str, stores: Path) -> bool:
    if not tag.startswith(_STATES):
        return tag.startswith(OUR_IMAGES)
    store = client.images.get(tag).labels.get("ramify.store", "")
    return Path(store).is_relative_to(stores.resolve())


def _derived(client: DockerClient, image: str) -> list[str]:
    """List the tags of all images built on an image, the leaves first."""
    rows: list[dict[str, Any]] = client.api.images(all=True)
    plain = [str(row["Id"]) for row in rows if plain_name(image) in (row["RepoTags"] or ())]
    ids = [row for root in (image, *plain) for row in _below(rows, root)]
    ids += [row for row in rows if str(row["Id"]) in plain]
    return [tag for row in ids for tag in row["RepoTags"] or ()]


def _below(rows: list[dict[str, Any]], parent: str) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row["ParentId"] == parent:
            yield from _below(rows, str(row["Id"]))
            yield row
