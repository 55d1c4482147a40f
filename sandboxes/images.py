"""What Ramify keeps on a Docker engine: images, their root file systems as volumes, and how leftovers go.

Whatever it makes there carries the label `ramify=1`, who made it and when; nothing else is ever removed.
"""

from __future__ import annotations

import io
import os
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes import ImageMissing, SandboxUnavailable, StoreFull

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image
    from docker.models.volumes import Volume
    from docker.types import Mount

__all__ = ["BASE_IMAGE", "base_volume", "clean", "connect", "find", "has_directory", "labels", "sweep"]

BASE_IMAGE = "ramify-base:latest"
"""Made by scripts/base-image; never pulled, so that nobody else's image of that name can take its place."""

_PULLS = threading.BoundedSemaphore(4)
_PULL_WAITS_S = (5.0, 20.0, 60.0)
_PULL_TIMEOUT_S = 3600.0
_PULL_SPACE_BYTES = 6 << 30
_SPARE_BYTES = 1 << 30
_FILL_TIMEOUT_S = 1800.0


def connect() -> DockerClient:
    """A client of the engine that `DOCKER_HOST`, else the current docker context, names.

    Raises:
        SandboxUnavailable: no engine answers there.
    """
    import docker
    from docker.context import ContextAPI
    from docker.errors import DockerException

    host = os.environ.get("DOCKER_HOST") or ContextAPI.get_current_context().Host or ""
    try:
        return docker.from_env(timeout=120, environment={**os.environ, "DOCKER_HOST": host})
    except DockerException as error:
        raise SandboxUnavailable(
            f"no Docker engine answers at {host} ({_innermost(error)}); start one (scripts/start-docker), set "
            "DOCKER_HOST, or use the namespace sandbox"
        ) from error


def find(client: DockerClient, name: str) -> Image:
    """The image called `name`, pulled when the engine lacks it.

    Raises:
        ImageMissing: it is neither here nor to be had from its registry.
        StoreFull: there is no space to pull it.
    """
    from docker.errors import ImageNotFound

    for spelling in _spellings(name):
        try:
            return client.images.get(spelling)
        except ImageNotFound:
            continue
    if name == BASE_IMAGE:
        raise ImageMissing(f"there is no image {name}; make it with scripts/base-image (`make image`), or name another")
    _require_space(client, _PULL_SPACE_BYTES)
    with _PULLS:
        problem = _pull(client, name)
    if problem:
        raise ImageMissing(
            f"there is no image {name} and it cannot be pulled ({problem}); load or pull it with docker, or use "
            f"{BASE_IMAGE}, which scripts/base-image makes without a registry"
        )
    return client.images.get(name)


def _spellings(name: str) -> tuple[str, ...]:
    """SWE-bench images have `_1776_` where they are published and `__` where they were built by hand."""
    return (name, name.rpartition("/")[2].replace("_1776_", "__")) if "_1776_" in name else (name,)


def _pull(client: DockerClient, name: str) -> str:
    """Pull, waiting where the registry asks for patience. "" when it worked, else why not."""
    problem = _pull_once(client, name)
    for wait_s in _PULL_WAITS_S:
        if "toomanyrequests" not in problem and "429" not in problem:
            break
        time.sleep(wait_s)
        problem = _pull_once(client, name)
    return problem


def _pull_once(client: DockerClient, name: str) -> str:
    from docker.errors import APIError

    deadline = time.monotonic() + _PULL_TIMEOUT_S
    # Published SWE-bench images are x86-64 only; an ARM machine emulates them if it is told to.
    platform = "linux/amd64" if "x86_64" in name else None
    tag = None if ":" in name.rpartition("/")[2] or "@" in name else "latest"
    try:
        for event in client.api.pull(name, tag=tag, stream=True, decode=True, platform=platform):
            if "error" in event:
                return str(event["error"])
            if time.monotonic() > deadline:
                return f"it takes longer than {_PULL_TIMEOUT_S:.0f} s"
    except APIError as error:
        return str(error.explanation or error)
    return ""


def _require_space(client: DockerClient, needed_bytes: int) -> None:
    """Raise StoreFull when the engine's disk, where it is this machine's, has less free than that."""
    root = Path(str(client.info()["DockerRootDir"]))
    if not str(client.api.base_url).startswith("http+docker://local") or not root.exists():
        return
    disk = os.statvfs(root)
    free = disk.f_bavail * disk.f_frsize
    if free < needed_bytes:
        raise StoreFull(
            f"{root} has {free / 1e9:.1f} GB free and {needed_bytes / 1e9:.1f} GB are needed; "
            "free some space, or run `ramify clean`"
        )


def base_volume(client: DockerClient, image: Image) -> str:
    """Name of the volume that holds the image's root file system in `rootfs/`; filled the first time.

    Only a volume whose filling ended holds the directory `complete`; any other is filled again.
    """
    from docker.types import Mount as VolumeMount

    digest = str(image.id).partition(":")[2][:12]
    volume = client.volumes.create(f"ramify-base-{digest}", labels=labels("base"))
    mount = VolumeMount("/mnt", volume.name, type="volume", no_copy=True)
    filler = _only_one(client, f"ramify-fill-{digest}", image, mount)
    try:
        if not has_directory(filler, "/mnt/complete"):
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


def has_directory(container: Container, path: str) -> bool:
    """Whether a container, running or not, has that directory: the engine unpacks nothing, an empty archive, there."""
    from docker.errors import NotFound

    try:
        container.put_archive(path, _tar())
    except NotFound:
        return False
    return True


def _fill(client: DockerClient, image: Image, filler: Container) -> None:
    _require_space(client, int(image.attrs["Size"]) + _SPARE_BYTES)
    source = client.containers.create(image, ["true"], labels=labels("base"), network_mode="none")
    try:
        filler.put_archive("/mnt", _tar("rootfs"))
        filler.put_archive("/mnt/rootfs", source.export())
        filler.put_archive("/mnt", _tar("complete"))
    finally:
        source.remove(v=True, force=True)


def _tar(*directories: str) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in directories:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
    return archive.getvalue()


def labels(run: str) -> dict[str, str]:
    """What marks a container or volume as ours, made by this process, now."""
    return {
        "ramify": "1",
        "ramify.run": run,
        "ramify.pid": str(os.getpid()),
        "ramify.host": _machine(),
        "ramify.created": str(int(time.time())),
    }


@cache
def _machine() -> str:
    """Where this process's number means this process: a host, and on Linux one of its process namespaces."""
    namespace = Path("/proc/self/ns/pid")
    number = namespace.stat().st_ino if namespace.exists() else 0
    return f"{socket.gethostname()}/{number}"


def sweep(client: DockerClient) -> tuple[str, ...]:
    """Remove our containers whose owning process on this machine is gone; their names."""
    ours = client.containers.list(all=True, filters={"label": "ramify=1"}, ignore_removed=True)
    gone = [box for box in ours if _owner(box.labels) == "gone"]
    return tuple(str(box.name) for box in gone if _removed(partial(box.remove, v=True, force=True)))


def clean(
    older_than_s: float = 0, *, client: DockerClient | None = None, now: Callable[[], float] = time.time
) -> tuple[str, ...]:
    """Remove what Ramify left on the engine and nothing uses; the names of what went.

    Containers whose owner is gone go at once, those of other machines when they are older than `older_than_s`; so do
    volumes (states, environments, root file systems of images) of that age that no container and no living owner has.
    """
    client = client or connect()
    removed = list(sweep(client))
    oldest = now() - older_than_s
    for box in client.containers.list(all=True, filters={"label": "ramify=1"}, ignore_removed=True):
        if _owner(box.labels) == "elsewhere" and _created(box.labels) <= oldest:
            removed += [str(box.name)] * _removed(partial(box.remove, v=True, force=True))
    for volume in client.volumes.list(filters={"label": "ramify=1"}):
        if not _in_use(volume) and _created(_labels_of(volume)) <= oldest:
            removed += [str(volume.name)] * _removed(volume.remove)
    return tuple(removed)


def _owner(marks: Mapping[str, str]) -> str:
    """`gone` or `alive`, of the process that made it; `elsewhere` when that was not on this machine."""
    pid = marks.get("ramify.pid", "")
    if marks.get("ramify.host") != _machine() or not pid.isdigit():
        return "elsewhere"
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        return "alive"
    return "alive"


def _created(marks: Mapping[str, str]) -> float:
    stamp = marks.get("ramify.created", "")
    return float(stamp) if stamp.isdigit() else 0.0


def _labels_of(volume: Volume) -> dict[str, str]:
    return volume.attrs.get("Labels") or {}


def _in_use(volume: Volume) -> bool:
    """States belong to their run while it lives; what can be made again is refused to `remove` while it is mounted."""
    marks = _labels_of(volume)
    return marks.get("ramify.run") != "base" and _owner(marks) == "alive"


def _removed(remove: Callable[[], object]) -> bool:
    """False when it is in use, or somebody else has just removed it."""
    from docker.errors import APIError

    try:
        remove()
    except APIError as error:
        if error.status_code in (404, 409):
            return False
        raise
    return True


def _innermost(error: BaseException) -> str:
    """The first cause's own words: docker's errors wrap it several times."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return str(error).strip() or type(error).__name__
