"""Connects to the Docker engine, labels what Ramify creates there, and removes leftovers.

Everything that Ramify creates has the label `ramify=1`, its creator and its time; nothing else is ever removed.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandboxes import SandboxError, SandboxUnavailable
from sandboxes.cleanup import Leftover, state_dir

if TYPE_CHECKING:
    from docker import DockerClient


ENVIRONMENTS_VOLUME = "ramify-environments"
"""Environments and set-ups that runs share. Its entries expire one by one (`sandboxes.forking.environment_cache`)."""

OUR_IMAGES = ("ramify-state:", "ramify-environment:", "ramify-setup:", "ramify-image:", "ramify-perf:")
"""Prefixes of the images that Ramify builds. Other images with its label were built on one of these."""
_BUILT = ("ramify-environment:", "ramify-setup:")
"""Prefixes of images that the same commands can build again."""
_DISK_USAGE_S = 120.0
_RETRY_S = 0.5


def connect() -> DockerClient:
    """A client of the engine that `DOCKER_HOST` names, else of the current docker context's, else of the first that
    answers: Docker, rootless Docker, the user's podman, the machine's podman.

    Raises:
        SandboxUnavailable: no engine answers; the message lists the addresses.
    """
    import docker
    from docker.errors import DockerException

    problems: dict[str, list[str]] = {}
    for address in addresses():
        try:
            _knock(address)
            return docker.from_env(timeout=120, environment={**os.environ, "DOCKER_HOST": address})
        except (DockerException, OSError) as error:
            problems.setdefault(_innermost(error), []).append(address)
    tried = ", ".join(f"{', '.join(places)} ({why})" for why, places in problems.items())
    raise SandboxUnavailable(
        f"no Docker engine answers at {tried}; start one (scripts/start-docker), set DOCKER_HOST, or use "
        "the namespace sandbox"
    )


def addresses() -> tuple[str, ...]:
    """List the addresses to try, in order. If the user named one, it is the only one."""
    from docker.context import ContextAPI

    named = os.environ.get("DOCKER_HOST")
    context = ContextAPI.get_current_context()
    if named or context.Name != "default":
        return (named or str(context.Host or ""),)
    own = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    sockets = ("/var/run/docker.sock", f"{own}/docker.sock", f"{own}/podman/podman.sock", "/run/podman/podman.sock")
    return tuple(f"unix://{socket}" for socket in sockets)


def is_podman(client: DockerClient) -> bool:
    """Whether the engine is podman with Docker's API."""
    return any(part.get("Name") == "Podman Engine" for part in client.version().get("Components") or ())


def has_image(client: DockerClient, name: str) -> bool:
    """Whether the engine has an image of that name."""
    from docker.errors import ImageNotFound

    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    return True


def _knock(host: str) -> None:
    """Raise OSError if a local socket does not answer, because the SDK would leave its own socket open."""
    _, local, path = host.partition("unix://")
    if local:
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(path)


@contextmanager
def translated() -> Iterator[None]:
    """Translate the engine's errors in the block. A time-out means an overloaded engine, not a wrong setting."""
    from docker.errors import DockerException
    from requests import RequestException, Timeout

    try:
        yield
    except Timeout as error:
        raise SandboxError(f"the Docker engine did not answer in time ({error}); it may be overloaded") from error
    except (DockerException, RequestException) as error:
        explanation = getattr(error, "explanation", None) or error
        raise SandboxUnavailable(
            f"the Docker engine failed: {explanation}; see its log, or use the namespace sandbox"
        ) from error


def labels(run: str, store: Path | None = None) -> dict[str, str]:
    """Return the labels for a container, volume or image that this process creates now, with its store."""
    return {
        **({"ramify.store": str(store.resolve())} if store else {}),
        "ramify": "1",
        "ramify.run": run,
        "ramify.pid": str(os.getpid()),
        "ramify.host": _machine(),
        "ramify.user": _user(),
        "ramify.created": str(int(time.time())),
    }


@cache
def _machine() -> str:
    """Return the scope in which a process id is unique: the host and, on Linux, its process namespace."""
    namespace = Path("/proc/self/ns/pid")
    number = namespace.stat().st_ino if namespace.exists() else 0
    return f"{socket.gethostname()}/{number}"


def _user() -> str:
    """Identify the user who runs Ramify, and the state directory."""
    return f"{os.getuid()}:{state_dir().resolve()}"


def _is_own(marks: Mapping[str, str]) -> bool:
    """Whether this user and state directory made a thing with these labels. Earlier versions recorded no user."""
    if _owner(marks) == "elsewhere":
        return False
    if "ramify.user" in marks:
        return marks["ramify.user"] == _user()
    return Path(marks.get("ramify.store", "/")).is_relative_to(state_dir().resolve())


def sweep(client: DockerClient) -> tuple[str, ...]:
    """Remove Ramify's containers whose owner on this machine has ended, and return their names."""
    ours = client.containers.list(all=True, filters={"label": "ramify=1"}, ignore_removed=True)
    gone = [box for box in ours if _owner(box.labels) == "gone"]
    return tuple(str(box.name) for box in gone if removed(partial(box.remove, v=True, force=True)))


def leftovers(
    client: DockerClient,
    wanted: Callable[[Path], bool],
    older_than_s: float = 0,
    built_before_s: float | None = None,
    *,
    all_users: bool = True,
) -> Iterator[Leftover]:
    """Yield Ramify's unused things on the engine; without `all_users`, only those of this user and state directory.

    These are containers whose owner has ended, and states (volumes, images) whose store here is no longer `wanted`.
    Things of other machines, and things that can be built again (root file systems, environments, set-ups), are
    leftovers once they are older than `older_than_s`; environments and set-ups than `built_before_s`, if given.
    """
    oldest = time.time() - older_than_s
    built = oldest if built_before_s is None else time.time() - built_before_s
    for box in client.containers.list(all=True, filters={"label": "ramify=1"}, ignore_removed=True):
        marks, owner = box.labels, _owner(box.labels)
        unused = owner == "gone" or (owner == "elsewhere" and _created(marks) <= oldest)
        if unused and (all_users or _is_own(marks)):
            remove = partial(removed, partial(box.remove, v=True, force=True))
            yield Leftover(f"container {box.name}", 0, remove, _store_of(marks))
    used = _disk_usage(client)
    sizes = {volume["Name"]: volume["UsageData"]["Size"] for volume in used["Volumes"] or ()}
    unshared = {image["Id"]: image["Size"] - max(0, image["SharedSize"]) for image in used["Images"] or ()}
    for volume in client.volumes.list(filters={"label": "ramify=1"}):
        marks = volume.attrs.get("Labels") or {}
        if volume.name != ENVIRONMENTS_VOLUME and (all_users or _is_own(marks)) and _may_go(marks, wanted, oldest):
            size = max(0, sizes.get(volume.name, 0))
            yield Leftover(f"volume {volume.name}", size, partial(removed, volume.remove), _store_of(marks))
    # one request, because other processes remove images meanwhile
    for image in client.api.images(filters={"label": "ramify=1"}):
        marks = image["Labels"] or {}
        for tag in [tag for tag in image["RepoTags"] or () if tag.startswith(OUR_IMAGES)]:
            old = built if tag.startswith(_BUILT) else oldest
            if (all_users or _is_own(marks)) and _may_go(marks, wanted, old):
                remove = partial(removed, partial(client.images.remove, tag))
                yield Leftover(f"image {tag}", unshared.get(image["Id"], 0), remove, _store_of(marks))


def _disk_usage(client: DockerClient) -> dict[str, Any]:
    """Return the sizes of volumes and images. An engine measures them for one caller at a time, and refuses others."""
    from docker.errors import APIError

    end = time.monotonic() + _DISK_USAGE_S
    while True:
        try:
            used: dict[str, Any] = client.df()
        except APIError as error:
            if "already running" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(_RETRY_S)
        else:
            return used


def _may_go(marks: Mapping[str, str], wanted: Callable[[Path], bool], oldest: float) -> bool:
    """Whether a volume or an image with these labels is unused."""
    owner, store = _owner(marks), marks.get("ramify.store")
    if marks.get("ramify.run") == "base":
        return _created(marks) <= oldest
    if owner == "elsewhere" or not store:
        return owner != "alive" and _created(marks) <= oldest
    return owner == "gone" and not wanted(Path(store))


def _owner(marks: Mapping[str, str]) -> str:
    """Whether the process that created it is `gone` or `alive`; `elsewhere` if it ran on another machine."""
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


def _store_of(marks: Mapping[str, str]) -> Path | None:
    store = marks.get("ramify.store")
    return Path(store) if store else None


def _created(marks: Mapping[str, str]) -> float:
    stamp = marks.get("ramify.created", "")
    return float(stamp) if stamp.isdigit() else 0.0


def removed(remove: Callable[[], object]) -> bool:
    """Call `remove`; False if the thing is in use or already gone."""
    from docker.errors import APIError

    try:
        remove()
    except APIError as error:
        if error.status_code in (404, 409):
            return False
        raise
    return True


def _innermost(error: BaseException) -> str:
    """Return the message of the innermost cause, which docker's errors wrap several times."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error).strip() or type(error).__name__
