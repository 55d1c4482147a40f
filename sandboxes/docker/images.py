"""Docker images: finding them, and their root file systems as volumes that states are made over."""

from __future__ import annotations

import io
import re
import tarfile
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes import ImageMissing, SandboxUnavailable
from sandboxes.docker.client import labels, sweep
from sandboxes.docker.pulls import pull
from sandboxes.forking import disk_space as room

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image
    from docker.types import Mount

__all__ = [
    "BASE_IMAGE",
    "base_volume",
    "base_volume_name",
    "environment_of",
    "find",
    "has_directory",
    "outward",
    "plain_name",
    "root_of",
]

BASE_IMAGE = "ramify-base:latest"
"""What guests run in, and what states are made of where no image is named. Made by scripts/base-image; never pulled, so
that nobody else's image of that name can take its place."""

_PART = r"[a-zA-Z0-9\[][\w.:@+\[\]-]*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*", re.ASCII)
"""What an engine is asked for: other names would lead to other places of its API."""
_PULL_SPACE_BYTES = 6 << 30
_GO_DIRECTORY = 1 << 31
"""Of a file mode as the engine, which is written in Go, has it."""
_SPARE_BYTES = 1 << 30
_FILL_TIMEOUT_S = 1800.0


def find(client: DockerClient, name: str) -> Image:
    """The image called `name`, pulled when the engine lacks it.

    Raises:
        ImageMissing: it is neither here nor to be had from its registry, or no image can have that name.
        RegistryBusy, RegistryDown: its registry has had too many requests, or fails.
        StoreFull: there is no space to pull it.
    """
    if not _NAME.fullmatch(name):
        raise ImageMissing(f"no image can be called {name!r}")
    for spelling in _spellings(name):
        if (image := _here(client, spelling)) is not None:
            return image
    if name == BASE_IMAGE:
        raise ImageMissing(
            f"there is no image {name}; make it with scripts/base-image (`make image`), or give that name to an image "
            "that you trust and that has Python 3.8 or newer (`docker tag`)"
        )
    _require_space(client, _PULL_SPACE_BYTES, f"pulling {name}")
    try:
        pull(client, name)
    except ImageMissing as error:
        raise ImageMissing(
            f"{error}; load or pull it with docker, or use {BASE_IMAGE}, which scripts/base-image makes without a "
            "registry"
        ) from error
    return client.images.get(name)


def _here(client: DockerClient, name: str) -> Image | None:
    """The image of that name, None where the engine lacks it. A name that is none is the image's fault, not the
    engine's, which would be everybody's."""
    from docker.errors import APIError, ImageNotFound

    try:
        return client.images.get(name)
    except ImageNotFound:
        return None
    except APIError as error:
        if error.status_code != HTTPStatus.BAD_REQUEST:
            raise
        raise ImageMissing(f"no image can be called {name!r}: {error.explanation}") from error


def _spellings(name: str) -> tuple[str, ...]:
    """SWE-bench images have `_1776_` where they are published and `__` where they were built by hand."""
    return (name, name.rpartition("/")[2].replace("_1776_", "__")) if "_1776_" in name else (name,)


def root_of(client: DockerClient) -> Path | None:
    """Where the engine keeps images and volumes; None when that is not on this machine."""
    root = Path(str(client.info()["DockerRootDir"]))
    return root if str(client.api.base_url).startswith("http+docker://local") and root.exists() else None


def _require_space(client: DockerClient, needed_bytes: int, what: str) -> None:
    """Raise StoreFull when the engine's disk, where it is this machine's, has less free than that."""
    if root := root_of(client):
        room.require(root, needed_bytes, what)


def base_volume_name(image_id: str) -> str:
    """What the volume with an image's files is called."""
    return f"ramify-base-{_short(image_id)}"


def plain_name(image_id: str) -> str:
    """What a copy of an image is called that has the same files in one layer, or a name where the image has none."""
    return f"ramify-image:{_short(image_id)}"


def _short(image_id: str) -> str:
    return image_id.partition(":")[2][:12]


def base_volume(client: DockerClient, image: Image) -> str:
    """Name of the volume that holds the image's root file system in `rootfs/`; filled the first time.

    Only a volume whose filling ended holds the directory `complete`; any other is filled again.
    """
    from docker.types import Mount as VolumeMount

    volume = client.volumes.create(base_volume_name(str(image.id)), labels=labels("base"))
    mount = VolumeMount("/mnt", volume.name, type="volume", no_copy=True)
    filler = _only_one(client, f"ramify-fill-{_short(str(image.id))}", image, mount)
    try:
        if not has_directory(client, filler, "/mnt/complete"):
            _fill(client, image, filler)
    finally:
        filler.remove(v=True, force=True)
    return str(volume.name)


def _only_one(client: DockerClient, name: str, image: Image, mount: Mount) -> Container:
    """A container, never started, whose name is a lock that every client of the engine respects."""
    from docker.errors import APIError

    deadline = time.monotonic() + _FILL_TIMEOUT_S
    while True:
        try:
            return client.containers.create(
                image, ["true"], name=name, mounts=[mount], labels=labels("base"), network_mode="none"
            )
        except APIError as error:
            if error.status_code != 409:
                raise
        if time.monotonic() > deadline:
            raise SandboxUnavailable(f"the container {name} is in the way; remove it with `docker rm {name}`")
        time.sleep(0.3)
        sweep(client)


def has_directory(client: DockerClient, container: Container, path: str) -> bool:
    """Whether a container, running or not, has that directory."""
    from docker.utils import decode_json_header

    api = client.api
    answer = api.head(
        f"{api.base_url}/v{api.api_version}/containers/{container.id}/archive",
        params={"path": path},
        timeout=api.timeout,
    )
    facts = decode_json_header(answer.headers["X-Docker-Container-Path-Stat"]) if answer.ok else {"mode": 0}
    return bool(facts["mode"] & _GO_DIRECTORY)


def _fill(client: DockerClient, image: Image, filler: Container) -> None:
    _require_space(client, int(image.attrs["Size"]) + _SPARE_BYTES, "unpacking the image")
    source = client.containers.create(image, ["true"], labels=labels("base"), network_mode="none")
    try:
        filler.put_archive("/mnt", _tar("rootfs"))
        filler.put_archive("/mnt/rootfs", source.export())
        filler.put_archive("/mnt/rootfs", _tar("dev/shm", mode=0o1777))  # the engine mounts one of that mode over it
        filler.put_archive("/mnt", _tar("complete"))
    finally:
        source.remove(v=True, force=True)


def _tar(directory: str, mode: int = 0o755) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo(directory)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)
    return archive.getvalue()


def environment_of(image: Image) -> dict[str, str]:
    """What the image says, over the least that commands expect."""
    stated = dict(entry.split("=", 1) for entry in image.attrs["Config"].get("Env") or ())
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "BASH_ENV": "/root/.bashrc", **stated}


def outward(client: DockerClient) -> str:
    """The network of commands that may use it: the engine's bridge, or the machine's own where that leads nowhere.

    Such commands see this machine's /etc/resolv.conf, and a name server on its loopback is out of the bridge's reach.
    """
    servers = re.findall(r"^nameserver\s+(\S+)", Path("/etc/resolv.conf").read_text(), re.MULTILINE)
    local = bool(servers) and all(server.startswith("127.") or server == "::1" for server in servers)
    return "host" if local or not client.networks.list(names=["bridge"]) else "bridge"
