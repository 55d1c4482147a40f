"""Launches guests in Docker: one hardened container per guest, and one volume for the states of a run.

The guest always runs in Ramify's base image. The image of its states is mounted as files, and programs of that image
run only in actions.

A container lives as long as the connection that started it. When this process ends in any way, the engine closes the
guest's stdin, the guest ends, and the engine removes the container. If the connection is lost without being closed (the
engine is on another machine), the guest ends after `guest.frames.IDLE_S`. Containers of a stopped process, or on a
sleeping machine, stay and continue with it.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes import ImageMissing, Limits, SandboxError, SandboxUnavailable, Workspace
from sandboxes.cleanup import Leftover
from sandboxes.docker import seccomp
from sandboxes.docker.client import ENVIRONMENTS_VOLUME, connect, is_podman, labels, sweep, translated
from sandboxes.docker.container_io import Attached, attach
from sandboxes.docker.images import (
    BASE_IMAGE,
    base_volume,
    environment_of,
    find,
    has_directory,
    outward,
    root_of,
    short_id,
    workdir_of,
)
from sandboxes.forking import environment_cache
from sandboxes.forking.guest_bundle import LOADER, STARTED, package
from sandboxes.forking.launcher import Layout
from sandboxes.forking.provider import ForkingProvider, require_shell

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image


_BASE, _STATES, _ENVIRONMENTS = "/base", "/states", "/environments"
_GUEST_BYTES = 192 << 20
"""Memory for the guest and the kernel's data about it, in addition to an action's limit."""
_GUEST_PIDS = 6
"""Processes of the guest and the container, in addition to an action's limit."""


class DockerLauncher:
    """Starts guests on a Docker engine. `store` is a directory that holds the name of the volume with the states."""

    def __init__(self, store: Path, *, limits: Limits) -> None:
        self._store = store
        self._limits = limits
        self._client = connect()
        sweep(self._client)
        with translated():
            self._disk = root_of(self._client)
            self._states = _volume_of(store, self._client)
            self._client.volumes.create(ENVIRONMENTS_VOLUME, labels=labels("base"))
        self._lock = threading.Lock()
        self._rootfs: dict[str, str] = {}

    @property
    def tier(self) -> str:
        """As `Provider.tier`."""
        return "docker: a container without network or capabilities, an overlay of its whole root a state; exact"

    def layout(self, workspace: Workspace) -> Layout:
        """As `Launcher.layout`. An image that the engine lacks is pulled."""
        with translated():
            name = workspace.image or BASE_IMAGE
            if workspace.image:
                self._own_image()
            image = find(self._client, name)
            self._ensure_rootfs(short_id(str(image.id)))
            config = image.attrs["Config"]
            workdir = workdir_of(image, workspace)
            if workspace.path is None and not _has(self._client, image, workdir):
                raise SandboxUnavailable(f"the image {name} has no {workdir}; say where its repository is")
        return Layout(
            image=short_id(str(image.id)),
            mounts=(("/", f"{_BASE}/rootfs"),),
            workdir=workdir,
            env=environment_of(image),
            user=str(config.get("User") or ""),
            key=str(image.id),
        )

    def start(self, image: str, *, network: bool) -> Attached:
        """As `Launcher.start`."""
        with translated():
            own = self._own_image()
            rootfs = self._ensure_rootfs(image)
            settings = self._host_config(rootfs, outward(self._client) if network else "none")
            container = self._client.api.create_container(
                str(own.id),
                entrypoint=["python3", "-BIS", "-c"],
                command=[LOADER, json.dumps(self._guest_arguments(network))],
                user="0:0",
                working_dir="/",
                stdin_open=True,
                host_config=settings,
                labels=labels(self._states, self._store),
            )
            connection = attach(self._client, str(container["Id"]))
        try:
            connection.receive(len(STARTED))
            connection.send(package())
        except (EOFError, OSError) as error:
            reason = connection.close() or error
            raise SandboxUnavailable(
                f"the guest does not start in the image {BASE_IMAGE} ({reason}); it needs Python 3.8 or newer"
            ) from error
        return connection

    @property
    def disk(self) -> Path | None:
        """As `Launcher.disk`."""
        return self._disk

    def lives(self, store: str) -> bool:
        """As `Launcher.lives`."""
        with translated():
            return bool(self._client.volumes.list(filters={"name": store}))

    def close(self) -> None:
        """As `Launcher.close`; the volumes stay."""
        self._client.close()

    def forget(self) -> None:
        """Remove the states. Call `close` first."""
        with translated():
            self._client.volumes.get(self._states).remove()
        (self._store / "volume").unlink(missing_ok=True)

    def _own_image(self) -> Image:
        """Find the image that guests run in. Programs of a foreign image would run as root before the guest confines
        them."""
        try:
            return find(self._client, BASE_IMAGE)
        except ImageMissing as error:
            raise SandboxUnavailable(
                f"{error}; without it no states can be forked, no matter which image they are made from"
            ) from error

    def _ensure_rootfs(self, name: str) -> str:
        """The volume with the root file system of this image."""
        from docker.errors import ImageNotFound

        with self._lock:
            if name not in self._rootfs:
                try:
                    image = self._client.images.get(name)
                except ImageNotFound as error:
                    raise ImageMissing(f"the image {name} of these states is gone; load or build it again") from error
                self._rootfs[name] = base_volume(self._client, image)
            return self._rootfs[name]

    def _guest_arguments(self, network: bool) -> dict[str, object]:
        unified = self._client.info().get("CgroupVersion") == "2"
        memory = "memory.events" if unified else "memory/memory.oom_control"
        pids = "pids.events" if unified else "pids/pids.events"
        return {
            "store": _STATES,
            "name": self._states,
            "environments": _ENVIRONMENTS,
            "network": network,
            "memory_events": f"/sys/fs/cgroup/{memory}",
            "pids_events": f"/sys/fs/cgroup/{pids}",
        }

    def _filters(self) -> list[str]:
        """Return the security options that confine the guest itself. Podman reads a filter only from a file on its own
        machine, and has its own option for an unmasked /proc."""
        if is_podman(self._client):
            return ["seccomp=unconfined", "unmask=ALL"]
        return [f"seccomp={seccomp.of_guests()}"]

    def _host_config(self, rootfs: str, network: str) -> dict[str, object]:
        """Disable everything that forking and running tests do not need.

        SETUID, SETGID and SETFCAP make the map of a user namespace, in which the guest mounts; no capability reaches an
        action. The engine's own masks over /proc would keep the guest from mounting a fresh one, which it masks itself.
        """
        from docker.types import LogConfig, Mount

        memory = self._limits.memory_bytes + _GUEST_BYTES
        config: dict[str, object] = self._client.api.create_host_config(
            auto_remove=True,
            init=True,
            network_mode=network,
            read_only=True,
            cap_drop=["ALL"],
            cap_add=["SETUID", "SETGID", "SETFCAP"],
            security_opt=["no-new-privileges", *self._filters(), "apparmor=unconfined"],
            mem_limit=memory,
            memswap_limit=memory,
            pids_limit=self._limits.pids + _GUEST_PIDS,
            log_config=LogConfig(type="none"),
            tmpfs={"/tmp": "size=64m,mode=1777"},  # noqa: S108 - of the container
            mounts=[
                Mount(_BASE, rootfs, read_only=True),
                Mount(_STATES, self._states),
                Mount(_ENVIRONMENTS, ENVIRONMENTS_VOLUME),
            ],
        )
        return {**config, "MaskedPaths": [], "ReadonlyPaths": []}


def docker_provider(store: Path, limits: Limits | None = None, *, paranoid: bool = False) -> ForkingProvider:
    """A provider of sandboxes in containers. A later provider on the same store finds its states.

    `paranoid`: as in `ForkingProvider`.

    Raises:
        SandboxUnavailable: no engine answers.
    """
    limits = limits or Limits()
    return ForkingProvider(DockerLauncher(store, limits=limits), limits, paranoid=paranoid)


def checked_provider(
    store: Path, limits: Limits, image: str | None = None, *, paranoid: bool = False
) -> ForkingProvider:
    """As `docker_provider`, after checking that a command runs in the image. On failure nothing is left behind.

    Raises:
        SandboxUnavailable: no engine answers, or the guest does not run in that image or on that engine.
        ImageMissing, StoreFull: the image cannot be pulled.
    """
    launcher = DockerLauncher(store, limits=limits)
    provider = ForkingProvider(launcher, limits, paranoid=paranoid)
    try:
        require_shell(provider, Workspace(image=image, mount="/usr"))
    except SandboxError:
        provider.close()
        launcher.forget()
        raise
    return provider


def probe() -> str:
    """Explain why states of the base image cannot be forked here, and what to change; empty if they can."""
    with tempfile.TemporaryDirectory() as store:
        try:
            launcher = DockerLauncher(Path(store), limits=Limits())
            try:
                with ForkingProvider(launcher, Limits()) as provider:
                    require_shell(provider, Workspace(mount="/usr"))
            finally:
                launcher.forget()
        except SandboxError as error:
            return str(error)
    return ""


def shared_leftovers(unused_s: float) -> Iterator[Leftover]:
    """Yield the environments and set-ups on the engine that no store needs and that were not used for `unused_s` s.

    Raises:
        SandboxUnavailable, ImageMissing: no engine answers, or it lacks the base image, whose Python lists them.
    """
    with tempfile.TemporaryDirectory(prefix="ramify-clean-") as store:
        launcher = DockerLauncher(Path(store), limits=Limits())
        try:
            yield from environment_cache.leftovers(launcher, launcher.layout(Workspace(mount="/usr")).image, unused_s)
        finally:
            launcher.close()
            launcher.forget()


def _volume_of(store: Path, client: DockerClient) -> str:
    """The volume with the states of a store. A file in the store has its name; it is created on first use."""
    note = store / "volume"
    if not note.exists():
        store.mkdir(parents=True, exist_ok=True)
        draft = store / f"volume.{os.getpid()}"
        draft.write_text(f"ramify-run-{secrets.token_hex(6)}", encoding="ascii")
        draft.replace(note)
    name = note.read_text(encoding="ascii")
    client.volumes.create(name, labels=labels(name, store))
    return name


def _has(client: DockerClient, image: Image, path: str) -> bool:
    """Whether the image has a directory at a path."""
    container = client.containers.create(image, ["true"], labels=labels("base"), network_mode="none")
    try:
        return has_directory(client, container, path)
    finally:
        container.remove(v=True, force=True)
