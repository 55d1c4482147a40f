"""The Docker engine: how it is reached, what marks a thing on it as ours, and how leftovers go.

Whatever Ramify makes there carries the label `ramify=1`, who made it and when; nothing else is ever removed.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes import SandboxUnavailable

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.volumes import Volume

__all__ = ["clean", "connect", "labels", "sweep"]


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
        _knock(host)
        return docker.from_env(timeout=120, environment={**os.environ, "DOCKER_HOST": host})
    except (DockerException, OSError) as error:
        raise SandboxUnavailable(
            f"no Docker engine answers at {host} ({_innermost(error)}); start one (scripts/start-docker), set "
            "DOCKER_HOST, or use the namespace sandbox"
        ) from error


def _knock(host: str) -> None:
    """Raise OSError where a local socket does not answer: the SDK would leave its own unclosed."""
    _, local, path = host.partition("unix://")
    if local:
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(path)


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
