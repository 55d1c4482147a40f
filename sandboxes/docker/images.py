"""Docker images: finds or pulls them, and unpacks their root file systems into volumes that states use."""

from __future__ import annotations

import io
import re
import tarfile
import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes import ImageMissing, SandboxUnavailable, Workspace
from sandboxes.docker.client import labels, sweep
from sandboxes.docker.pulls import pull
from sandboxes.forking import disk_space

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image
    from docker.types import Mount


BASE_IMAGE = "ramify-base:latest"
"""The image that guests run in, and the default image for states. scripts/base-image builds it. It is never pulled, so
that another image of this name cannot replace it."""

_PART = r"[a-zA-Z0-9\[][\w.:@+\[\]-]*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*", re.ASCII)
"""Valid image names. Other names could reach other endpoints of the engine's API."""
_PULL_SPACE_BYTES = 6 << 30
_GO_DIRECTORY = 1 << 31
"""The directory bit of a file mode in Go, the engine's language."""
_SPARE_BYTES = 1 << 30
_FILL_TIMEOUT_S = 1800.0


def find(client: DockerClient, name: str) -> Image:
    """Return the image called `name`; pull it if the engine lacks it.

    Raises:
        ImageMissing: neither the engine nor the registry has it, or the name is not valid.
        RegistryBusy, RegistryDown: its registry refuses too many requests, or fails.
        StoreFull: there is not enough disk space to pull it.
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
    """Return the image of this name; None if the engine lacks it. An invalid name raises ImageMissing."""
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
    """The name and its local variant: SWE-bench images have `_1776_` when published and `__` when built by hand."""
    return (name, name.rpartition("/")[2].replace("_1776_", "__")) if "_1776_" in name else (name,)


def root_of(client: DockerClient) -> Path | None:
    """The directory where the engine keeps images and volumes; None if the engine is on another machine."""
    root = Path(str(client.info()["DockerRootDir"]))
    return root if str(client.api.base_url).startswith("http+docker://local") and root.exists() else None


def _require_space(client: DockerClient, needed_bytes: int, what: str) -> None:
    """Raise StoreFull if the engine is on this machine and its disk has less free space."""
    if root := root_of(client):
        disk_space.require(root, needed_bytes, what)


def base_volume_name(image_id: str) -> str:
    """The name of the volume that holds an image's files."""
    return f"ramify-base-{short_id(image_id)}"


def plain_name(image_id: str) -> str:
    """Return Ramify's name for an image without a tag, or for its flattened copy."""
    return f"ramify-image:{short_id(image_id)}"


def short_id(image_id: str) -> str:
    """The first twelve digits of an image's id."""
    return image_id.partition(":")[2][:12]


def base_volume(client: DockerClient, image: Image) -> str:
    """Return the volume that holds the image's root file system in `rootfs/`; it is filled on first use.

    A completely filled volume holds a directory `complete`; any other volume is filled again.
    """
    from docker.types import Mount as VolumeMount

    volume = client.volumes.create(base_volume_name(str(image.id)), labels=labels("base"))
    mount = VolumeMount("/mnt", volume.name, type="volume", no_copy=True)
    filler = _only_one(client, f"ramify-fill-{short_id(str(image.id))}", image, mount)
    try:
        if not has_directory(client, filler, "/mnt/complete"):
            _fill(client, image, filler)
    finally:
        filler.remove(v=True, force=True)
    return str(volume.name)


def _only_one(client: DockerClient, name: str, image: Image, mount: Mount) -> Container:
    """Create a container that is never started. Its name is a lock among all clients of the engine."""
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
            raise SandboxUnavailable(
                f"the container {name} blocks the unpacking of an image; remove it with `docker rm {name}`"
            )
        time.sleep(0.3)
        sweep(client)


def has_directory(client: DockerClient, container: Container, path: str) -> bool:
    """Whether a container, running or not, has a directory."""
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
        filler.put_archive("/mnt/rootfs", _tar("dev/shm", mode=0o1777))  # the mode that the engine mounts over it
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


def workdir_of(image: Image, workspace: Workspace) -> str:
    """The workspace's directory inside: its mount, or the working directory of the image that holds the repository."""
    inside = str(image.attrs["Config"].get("WorkingDir") or "").rstrip("/") if workspace.path is None else ""
    return workspace.mount or inside or "/workspace"


def environment_of(image: Image) -> dict[str, str]:
    """The image's environment variables, over the minimum that commands expect."""
    stated = dict(entry.split("=", 1) for entry in image.attrs["Config"].get("Env") or ())
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "BASH_ENV": "/root/.bashrc", **stated}


def outward(client: DockerClient) -> str:
    """Return the network for set-up commands: the engine's bridge, or the host's network if the bridge cannot work.

    Commands see the host's /etc/resolv.conf, and a name server on the host's loopback is unreachable from the bridge.
    """
    servers = re.findall(r"^nameserver\s+(\S+)", Path("/etc/resolv.conf").read_text(), re.MULTILINE)
    local = bool(servers) and all(server.startswith("127.") or server == "::1" for server in servers)
    return "host" if local or not client.networks.list(names=["bridge"]) else "bridge"
