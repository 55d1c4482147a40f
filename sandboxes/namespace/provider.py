"""Sandboxes without Docker: the guest runs in user namespaces, with this machine's own programs.

Isolated are files, processes, IPC, network, privileges, and the user's HOME and environment. Not isolated: the kernel
is shared, and the programs under `/usr` can be read.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sandboxes import Limits, SandboxError, SandboxUnavailable, Workspace
from sandboxes.cleanup import Leftover
from sandboxes.forking import environment_cache
from sandboxes.forking.guest_bundle import LOADER, STARTED, package
from sandboxes.forking.launcher import Layout
from sandboxes.forking.provider import ForkingProvider, require_shell
from sandboxes.namespace import beneath, cgroups, pythons, rootfs

log = logging.getLogger(__name__)

_OLDEST_KERNEL = (5, 11)
_STDERR_BYTES = 4000
_END_TIMEOUT_S = 5.0
_JOIN = 'for file in $JOIN; do echo $$ >"$file" || exit 1; done; unset JOIN; exec "$@"'


def namespace_provider(
    store: Path,
    limits: Limits = Limits(),  # noqa: B008
    *,
    paranoid: bool = False,
) -> ForkingProvider:
    """Make a provider with its states in `store`, a local directory; `paranoid` is as in `ForkingProvider`."""
    return ForkingProvider(NamespaceLauncher(store, limits), limits, paranoid=paranoid)


def checked_provider(store: Path, limits: Limits, *, paranoid: bool = False) -> ForkingProvider:
    """As `namespace_provider`, after checking that a command runs in it.

    Raises:
        SandboxUnavailable: the namespace sandbox does not work here; the message says what to change.
    """
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    if sys.platform != "linux" or release < _OLDEST_KERNEL:
        raise SandboxUnavailable(
            f"namespace sandboxes need Linux 5.11 or later, this is {platform.system()} {platform.release()}; "
            "use Docker"
        )
    try:
        with contextlib.ExitStack() as failed, tempfile.TemporaryDirectory(prefix="ramify-probe-") as empty:
            provider = failed.enter_context(namespace_provider(store, limits, paranoid=paranoid))
            require_shell(provider, Workspace(path=Path(empty)))
            failed.pop_all()
            return provider
    except (SandboxError, OSError) as error:
        raise SandboxUnavailable(f"{error}; {_remedy()}") from error


def probe(place: Path | None = None) -> str:
    """Explain in one line why the namespace sandbox does not work here and what to change; "" if it works.

    `place` is a directory on the disk to test.
    """
    with tempfile.TemporaryDirectory(prefix="ramify-probe-", dir=place) as directory:
        try:
            checked_provider(Path(directory, "store"), Limits()).close()
        except SandboxUnavailable as error:
            return str(error)
    return ""


def _remedy() -> str:
    """Return advice for the most likely obstacle."""
    for name, bad in (
        ("user/max_user_namespaces", "0"),
        ("kernel/unprivileged_userns_clone", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ):
        path = Path("/proc/sys", name)
        if path.exists() and path.read_text().strip() == bad and (os.geteuid() != 0 or bad == "0"):
            return f"{name.replace('/', '.')} is {bad}: set it to {1 - int(bad) or 10000} with sysctl, or use Docker"
    return "use Docker, or a store on ext4, xfs or btrfs"


def shared_leftovers(unused_s: float) -> Iterator[Leftover]:
    """Yield the environments and set-ups here that no store needs and that were not used for `unused_s` seconds.

    Raises:
        SandboxUnavailable: the namespace sandbox does not work here.
    """
    with tempfile.TemporaryDirectory(prefix="ramify-clean-") as store:
        yield from environment_cache.leftovers(NamespaceLauncher(Path(store, "own"), Limits()), "", unused_s)


class NamespaceLauncher:
    """Starts guests as child processes of this one."""

    def __init__(self, store: Path, limits: Limits) -> None:
        self._store = store.resolve()
        self._limits = limits
        self._store.mkdir(parents=True, exist_ok=True)
        self._store.chmod(0o700)
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._environments = cache / "ramify" / "environments"
        self._warned: set[str] = set()
        self._warn_of_changes()

    @property
    def tier(self) -> str:
        """As `Provider.tier`."""
        return (
            f"namespace: user namespaces on this machine's own programs, shared kernel; states are exact; {_bounds()}"
        )

    def layout(self, workspace: Workspace) -> Layout:
        """As `Launcher.layout`."""
        if workspace.path is None:
            raise SandboxUnavailable("a namespace sandbox needs a checkout on this machine; give a path, or use Docker")
        path = workspace.path.resolve()
        if not path.is_dir():
            raise SandboxError(f"{path} is not a directory")
        found = pythons.pythons(path, workspace.env)
        system = rootfs.system_directories()
        workdir = workspace.mount or str(path)
        there = (*rootfs.PROGRAMS, workdir)
        folders = _outermost(pythons.folders(found, path), there)
        links = [link for link in pythons.links(found) if not _inside(str(link), [*there, *folders])]
        mounts = [("/", str(rootfs.make(self._store, links))), *((name, name) for name in system)]
        mounts += [(name, os.path.realpath(name)) for name in folders]
        lowers = [lower for _, lower in mounts[1:]]
        beneath.note(self._store, lowers)
        return Layout(
            image="",
            mounts=tuple(mounts),
            workdir=workdir,
            env={"PATH": ":".join([*pythons.search_path(found, path, workdir)]), "HOME": "/root"},
            key=" ".join([platform.platform(), sys.version, *map(beneath.stamp, lowers), *map(str, links)]),
            leave_out=(self._store,),
        )

    def start(self, image: str, *, network: bool) -> Process:
        """As `Launcher.start`."""
        if image:
            raise SandboxUnavailable(f"the snapshot belongs to the image {image}, not to this machine's own files")
        self._warn_of_changes()
        self._environments.mkdir(parents=True, exist_ok=True)
        group = cgroups.make(self._limits)
        config: dict[str, object] = {
            "store": str(self._store),
            "name": str(self._store),
            "environments": str(self._environments),
            "network": network,
        }
        if group.memory_events:
            config["memory_events"] = str(group.memory_events)
        if group.pids_events:
            config["pids_events"] = str(group.pids_events)
        process = Process([sys.executable, "-BIS", "-c", LOADER, json.dumps(config)], group)
        try:
            process.receive(len(STARTED))
            process.send(package())
        except (EOFError, OSError) as error:
            raise SandboxUnavailable(f"the guest does not start: {process.close() or error}") from error
        return process

    @property
    def disk(self) -> Path:
        """As `Launcher.disk`."""
        return self._store

    def lives(self, store: str) -> bool:
        """As `Launcher.lives`."""
        return Path(store).is_dir()

    def close(self) -> None:
        """Warn about changes. Guests share nothing that must be freed."""
        self._warn_of_changes()

    def _warn_of_changes(self) -> None:
        """Warn once about each shared directory that has changed since the states were made."""
        new = [place for place in beneath.changed(self._store) if place not in self._warned]
        self._warned.update(new)
        if new:
            log.warning(
                "%s changed on this machine since the states in %s were made, and all states show the changes: earlier "
                "measurements cannot be compared with later ones; start a new run",
                ", ".join(new),
                self._store,
            )


def _bounds() -> str:
    """Describe how memory and processes are limited. The kernel's process limit does not apply to root."""
    by_group = cgroups.limited()
    memory = "memory limited" if "memory" in by_group else "memory limited for each process separately"
    alone = "processes not limited" if os.geteuid() == 0 else "processes limited"
    return f"{memory}, {'processes limited' if 'pids' in by_group else alone}"


class Process:
    """A guest that is a child process, as a `Channel`."""

    def __init__(self, command: Sequence[str], group: cgroups.Group) -> None:
        self._group = group
        self._closing = threading.Lock()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _JOIN, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "JOIN": " ".join(group.joins)},
            start_new_session=True,
            cwd="/",
        )

    def send(self, data: bytes) -> None:
        """As `Channel.send`."""
        assert self._process.stdin
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def receive(self, size: int) -> bytes:
        """As `Channel.receive`."""
        assert self._process.stdout
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def close(self) -> str:
        """As `Channel.close`."""
        with self._closing:
            if self._errors.closed:
                return ""
            for stream in (self._process.stdin, self._process.stdout):
                assert stream
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
            try:
                self._process.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._group.remove()
            self._errors.seek(0)
            said = self._errors.read()[-_STDERR_BYTES:].decode(errors="replace")
            self._errors.close()
            return said


def _outermost(folders: Iterable[str], covered: Sequence[str]) -> tuple[str, ...]:
    """List the folders that are neither inside another folder nor already covered, parents first."""
    kept: list[str] = []
    for folder in sorted(set(folders), key=len):
        if folder != "/" and not _inside(folder, [*covered, *kept]):
            kept.append(folder)
    return tuple(kept)


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)
