"""A leased container: runs commands, reads and writes files, and can be frozen into a state."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sandboxes import ExecResult, Limits, SandboxLost, Snapshot, SnapshotMissing, TemplateLost
from sandboxes.commit.archives import Files
from sandboxes.commit.command import FIRST_PROCESS, Command, run
from sandboxes.commit.manifest import Entry, Manifest, delta
from sandboxes.commit.states import State, States
from sandboxes.docker import seccomp
from sandboxes.docker.client import is_podman, removed
from sandboxes.forking.arguments import require_command, require_text

if TYPE_CHECKING:
    from docker import DockerClient


_REMOVE_TIMEOUT_S = 120.0
_MOUNTED = ("/dev", "/proc", "/sys", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/.dockerenv")
"""Paths that the engine creates for each container or command; they are not part of a state."""


@contextmanager
def leased(
    client: DockerClient,
    states: States,
    state: State,
    limits: Limits,
    network: str = "none",
    capabilities: Sequence[str] = (),
    base_entry: Callable[[str], Entry | None] = lambda _: None,
) -> Iterator[Box]:
    """Lease a container for the block. `base_entry` returns the base state's entry at an absolute path."""
    box = Box(
        client, states, state, make(client, state, limits, states.marks, network, capabilities), limits, base_entry
    )
    try:
        yield box
    finally:
        box.end()


def make(
    client: DockerClient,
    state: State,
    limits: Limits,
    marks: Mapping[str, str],
    network: str = "none",
    capabilities: Sequence[str] = (),
) -> str:
    """Create, but do not start, a hardened container of a state's image, and return its id."""
    from docker.errors import ImageNotFound
    from docker.types import Healthcheck

    try:
        container = client.api.create_container(
            state.image,
            entrypoint=list(FIRST_PROCESS),
            command=[],
            user=state.user,
            hostname="sandbox" if network != "host" else None,
            working_dir="/",
            environment=dict(state.env),
            stdin_open=True,
            host_config=_hardened(client, limits, network, capabilities),
            healthcheck=Healthcheck(test=["NONE"]),
            labels=dict(marks),
        )
    except ImageNotFound as error:
        raise SnapshotMissing(f"the image {state.image} is gone from the engine") from error
    return str(container["Id"])


def _hardened(client: DockerClient, limits: Limits, network: str, capabilities: Sequence[str]) -> dict[str, Any]:
    """The host configuration with a container's limits and restrictions."""
    from docker.types import LogConfig, Ulimit

    config: dict[str, Any] = client.api.create_host_config(
        network_mode=network,
        cap_drop=["ALL"],
        cap_add=list(capabilities) or None,
        security_opt=["no-new-privileges", *_filters(client)],
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,
        pids_limit=limits.pids,
        ulimits=[
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="fsize", soft=limits.disk_bytes, hard=limits.disk_bytes),
        ],
        log_config=LogConfig(type="none"),
    )
    return config


@cache
def _filters(client: DockerClient) -> tuple[str, ...]:
    """The seccomp option. Podman reads a filter only from a file on its own machine; some engines support none."""
    supported = any("seccomp" in option for option in client.info().get("SecurityOptions") or ())
    return (f"seccomp={seccomp.of_commands()}",) if supported and not is_podman(client) else ()


class Box:
    """A container over a state that implements `sandboxes.Sandbox`. It runs only while a command runs."""

    def __init__(
        self,
        client: DockerClient,
        states: States,
        state: State,
        container: str,
        limits: Limits,
        base_entry: Callable[[str], Entry | None],
    ) -> None:
        self._client, self._states, self._limits = client, states, limits
        self._state = state
        self.container = container
        self._base_entry = base_entry
        self._written: set[str] = set()
        self._ran = False
        self._open = True
        self.workdir = state.workdir
        self.files = Files(client, container)

    @property
    def is_open(self) -> bool:
        """Whether the container still exists."""
        return self._open

    def _require_open(self) -> None:
        if not self._open:
            raise SandboxLost("the fork is gone: its last command timed out, or its lease ended")

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> ExecResult:
        """As `sandboxes.Sandbox.exec`."""
        require_command(argv, env or {}, cwd)
        self._require_open()
        self._ran = True
        command = Command(argv, timeout_s, posixpath.join(self.workdir, cwd or ""), env or {}, stdin)
        done = run(self._client, self.container, command, self._limits, self._size)
        self._require_open()  # the provider may have been closed
        if done.timed_out:
            self.end()
        return done

    def perform(self, order: bytes, *, timeout_s: float) -> ExecResult:
        """Not supported: always raises TemplateLost."""
        raise TemplateLost("a container of a committed image has no template")

    def _size(self) -> int:
        """Return the bytes that the container holds in addition to its image."""
        rows = self._client.api.containers(all=True, size=True, filters={"id": self.container})
        return int(rows[0].get("SizeRw") or 0) if rows else 0

    def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """As `sandboxes.Sandbox.read`."""
        self._require_open()
        return self.files.read(self._absolute(path), max_bytes)

    def write(self, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """As `sandboxes.Sandbox.write`."""
        self._require_open()
        place = self.files.write(self._absolute(path), data, executable, self._state.owner, time.time())
        self._written.add(place)

    def remove(self, path: str) -> None:
        """As `sandboxes.Sandbox.remove`."""
        self._require_open()
        place = self._absolute(path)
        if self.files.look(place) is None:
            return
        done = self.exec(["rm", "-rf", "--", place], timeout_s=_REMOVE_TIMEOUT_S, cwd="/")
        if done.exit_code:
            raise PermissionError(f"cannot remove {path}: {done.stderr.decode(errors='replace').strip()}")

    def _absolute(self, path: str) -> str:
        require_text(path)
        return posixpath.normpath(posixpath.join(self.workdir, path))

    def snapshot(self) -> Snapshot:
        """As `sandboxes.Sandbox.snapshot`. The lease continues in the same container, which has exactly that state."""
        self._require_open()
        tree, outside = self.compare()
        facts = replace(
            self._state,
            tree=delta(self._states.base_tree(self._state.base), tree),
            outside=outside,
            tracked=(),
            exclude="",
        )
        return self._states.new(self.container, facts).snapshot

    def compare(self) -> tuple[Manifest, dict[str, Entry | None]]:
        """Return the workspace's manifest, and the differences from the base outside the workspace."""
        outside = dict(self._state.outside)
        top = self.workdir + "/"
        for path in self._changed():
            if not path.startswith(top):
                self._note(path, outside)
        if self._ran:
            return self.files.tree(self.workdir), outside
        tree = dict(self._states.manifest(self._state))
        for path in self._changed():
            entry = self.files.entry(path) if path.startswith(top) else None
            if entry:
                tree[path.removeprefix(top)] = entry
        return tree, outside

    def _changed(self) -> list[str]:
        """Absolute paths that may differ from the container's image.

        Once a command has run, paths inside the workspace are left out.
        """
        if not self._ran:
            return sorted({above for path in self._written for above in upwards(path)})
        listed = [str(change["Path"]) for change in self._client.api.diff(self.container) or ()]
        inside = self.workdir + "/"
        return sorted(path for path in listed if not f"{path}/".startswith(inside) and not _is_mounted(path))

    def _note(self, path: str, outside: dict[str, Entry | None]) -> None:
        entry = self.files.entry(path)
        if entry is None:
            for below in [name for name in outside if name.startswith(path + "/")]:
                del outside[below]
        if entry == self._base_entry(path):
            outside.pop(path, None)
        else:
            outside[path] = entry

    def end(self) -> None:
        """Remove the container. May be called again."""
        if self._open:
            self._open = False
            remove(self._client, self.container)


def remove(client: DockerClient, container: str) -> None:
    """Kill and remove a container, unless it is already gone."""
    removed(partial(client.api.remove_container, container, v=True, force=True))


def upwards(path: str) -> list[str]:
    """A path and every directory above it except the root, outermost first."""
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _is_mounted(path: str) -> bool:
    return any(path == place or path.startswith(place + "/") for place in _MOUNTED)
