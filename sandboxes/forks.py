"""A provider of sandboxes over whatever starts guests: leases, base states, patches."""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, cast

from sandboxes import (
    Change,
    ExecResult,
    Limits,
    SandboxError,
    SandboxLost,
    SetupFailed,
    Snapshot,
    SnapshotMissing,
    Workspace,
)
from sandboxes.borrow import borrow
from sandboxes.checkout import Repository, names, pack, repository
from sandboxes.frames import Guest, Upload
from sandboxes.launch import Launcher, Layout
from sandboxes.patches import Difference, Side, ignored, patch

__all__ = ["Forks"]

_ENV = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",  # an edit within a second of the last one would meet stale byte code
    "PYTHONHASHSEED": "0",
}
_SETUP_TIMEOUT_S = 3600.0
_SETUP_DISK_BYTES = 32 << 30
_LISTING_TIMEOUT_S = 120.0


class Forks:
    """Keeps states in guests' stores and leases forks of them. One lease a guest at a time; idle guests are reused."""

    def __init__(self, launcher: Launcher, limits: Limits) -> None:
        self._launcher = launcher
        self._limits = limits
        self._lock = threading.Lock()
        self._guests: set[Guest] = set()
        self._idle: dict[str, list[Guest]] = {}
        self._leased: Counter[str] = Counter()
        self._doomed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def tier(self) -> str:
        """As `sandboxes.Provider.tier`."""
        return self._launcher.tier

    def close(self) -> None:
        """As `sandboxes.Provider.close`."""
        with self._lock:
            guests = list(self._guests)
            self._guests.clear()
            self._idle.clear()
        for guest in guests:
            guest.close()
        self._launcher.close()

    def create(self, workspace: Workspace) -> Snapshot:
        """As `sandboxes.Provider.create`."""
        layout = self._launcher.layout(workspace)
        env = {**_ENV, **layout.env, **workspace.env}
        environment = self._environment(layout, workspace, env)
        with self._guest(layout.place, network=bool(workspace.setup)) as guest:
            known, lower, content = _import(guest, layout, workspace)
            founded, _ = guest.ask(
                "found",
                mounts=[*layout.mounts, (layout.workdir, lower)],
                workdir=layout.workdir,
                env=env,
                key=f"{layout.key} {content}",
                environment=environment,
            )
            with _prepared(guest, founded["id"], "store", self._limits, bool(workspace.setup)) as fork:
                if workspace.path is None:
                    known = _listed(fork)
                _run_all(fork, workspace.setup)
                prepared = fork.freeze()
            settled = _settle(guest, founded["id"], prepared, "store", tracked=known.tracked, exclude=known.exclude)
        return _snapshot(layout.place, settled)

    def _environment(self, layout: Layout, workspace: Workspace, env: Mapping[str, str]) -> str | None:
        """The shared environment that these commands build, built now if it never was; None without commands."""
        if not workspace.environment:
            return None
        key = _key(layout.key, [target for target, _ in layout.mounts], workspace.environment)
        with self._guest(layout.place, network=True) as guest:
            try:
                guest.ask("info", area="environments", id=key)
            except SnapshotMissing:
                founded, _ = guest.ask(
                    "found", area="environments", mounts=layout.mounts, workdir="/", env=env, key=layout.key
                )
                with _prepared(guest, founded["id"], "environments", self._limits, True) as fork:
                    _run_all(fork, workspace.environment)
                    prepared = fork.freeze()
                _settle(guest, founded["id"], prepared, "environments", **{"as": key})
        return key

    @contextmanager
    def at(self, snapshot: Snapshot) -> Iterator[Fork]:
        """As `sandboxes.Provider.at`."""
        with self._lease(snapshot, {}) as fork:
            yield fork

    @contextmanager
    def scratch(self, snapshot: Snapshot, base: Snapshot, put_back: Sequence[str] = ()) -> Iterator[Fork]:
        """As `sandboxes.Provider.scratch`."""
        self._require(base)
        paths = [_relative(path) for path in put_back]
        with self._lease(snapshot, {"outside": _state(base), "put_back": paths}) as fork:
            yield fork

    @contextmanager
    def _lease(self, snapshot: Snapshot, fields: Mapping[str, object]) -> Iterator[Fork]:
        self._require(snapshot)
        needed = [_state(snapshot), *([str(fields["outside"])] if "outside" in fields else [])]
        with self._guest(_place(snapshot)) as guest:
            with self._lock:
                self._leased.update(needed)
            try:
                with Fork.lease(guest, _place(snapshot), self._limits, id=_state(snapshot), **fields) as fork:
                    yield fork
            finally:
                self._unlease(guest, needed)

    def _unlease(self, guest: Guest, needed: Sequence[str]) -> None:
        with self._lock:
            self._leased.subtract(needed)
            free = {name for name in needed if name in self._doomed and not self._leased[name]}
            self._doomed -= free if guest.alive else set()
        for name in free if guest.alive else ():
            guest.ask("discard", id=name)

    def _require(self, snapshot: Snapshot) -> None:
        if _state(snapshot) in self._doomed:
            raise SnapshotMissing(f"the snapshot {snapshot.id} was discarded")

    def changes(self, old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
        """As `sandboxes.Provider.changes`."""
        header, _ = self._compare(old, new, content=False)
        return tuple(Change(path, _kind(before, after)) for path, before, after in header["changes"])

    def diff(self, old: Snapshot, new: Snapshot) -> bytes:
        """As `sandboxes.Provider.diff`."""
        header, payload = self._compare(old, new, content=True)
        known = frozenset(header["tracked"])
        paths = [path for path, _, _ in header["changes"] if path not in known]
        left_out = ignored(paths, header["ignores"], header["exclude"])
        sides = io.BytesIO(payload)
        found = [
            Difference(path, _side(before, sides), _side(after, sides)) for path, before, after in header["changes"]
        ]
        return patch([each for each in found if each.path not in left_out and _ours(each.path, header["nested"])])

    def _compare(self, old: Snapshot, new: Snapshot, *, content: bool) -> tuple[dict[str, Any], bytes]:
        self._require(old)
        self._require(new)
        with self._guest(_place(new)) as guest:
            return guest.ask("compare", old=_state(old), new=_state(new), content=content)

    def discard(self, snapshot: Snapshot) -> None:
        """As `sandboxes.Provider.discard`. What a running lease stands on goes when that ends."""
        self._require(snapshot)
        with self._lock:
            if self._leased[_state(snapshot)]:
                self._doomed.add(_state(snapshot))
                return
        with self._guest(_place(snapshot)) as guest:
            guest.ask("discard", id=_state(snapshot))

    @contextmanager
    def _guest(self, place: str, *, network: bool = False) -> Iterator[Guest]:
        """A guest of our own for the block; one with a network ends with it."""
        with self._lock:
            idle = self._idle.get(place) if not network else None
            guest = idle.pop() if idle else None
        if guest is None:
            guest = Guest(self._launcher.start(place, network=network))
            with self._lock:
                self._guests.add(guest)
        try:
            yield guest
        finally:
            self._put(guest, place, keep=not network)

    def _put(self, guest: Guest, place: str, *, keep: bool) -> None:
        with self._lock:
            keep = keep and guest.alive and guest in self._guests
            if keep:
                self._idle.setdefault(place, []).append(guest)
            else:
                self._guests.discard(guest)
        if not keep:
            guest.close()


class Fork:
    """One leased fork, as `sandboxes.Sandbox`."""

    def __init__(self, guest: Guest, place: str, limits: Limits, fields: Mapping[str, object]) -> None:
        self._guest = guest
        self._place = place
        self._limits = limits
        self._fields = dict(fields)
        self._open = False
        self._begin()

    @classmethod
    @contextmanager
    def lease(cls, guest: Guest, place: str, limits: Limits, **fields: object) -> Iterator[Fork]:
        """A fork for the block."""
        fork = cls(guest, place, limits, fields)
        try:
            yield fork
        finally:
            fork.end()

    def _begin(self) -> None:
        header, _ = self._guest.ask("lease", **self._fields)
        self.workdir: str = header["workdir"]
        self._env: dict[str, str] = header["env"]
        self._open = True

    def _ask(self, op: str, payload: bytes = b"", **fields: object) -> tuple[dict[str, Any], bytes]:
        if not self._open:
            raise SandboxLost("the fork is gone: its last command timed out, or its lease ended")
        try:
            return self._guest.ask(op, payload, **fields)
        except SandboxLost:
            self._open = False
            self._guest.close()
            raise

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
        header, output = self._ask(
            "exec",
            stdin,
            argv=list(argv),
            cwd=cwd or self.workdir,
            env={**self._env, **(env or {})},
            timeout_s=timeout_s,
            output_bytes=self._limits.output_bytes,
            memory_bytes=self._limits.memory_bytes,
            pids=self._limits.pids,
            disk_bytes=self._limits.disk_bytes,
        )
        self._open = not header["timed_out"]
        size = header["stdout"]
        return ExecResult(
            exit_code=header["code"],
            stdout=output[:size],
            stderr=output[size:],
            stdout_bytes=header["stdout_bytes"],
            stderr_bytes=header["stderr_bytes"],
            duration_s=header["duration_s"],
            timed_out=header["timed_out"],
            limit=header["limit"],
        )

    def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """As `sandboxes.Sandbox.read`."""
        return self._ask("read", path=path, max_bytes=max_bytes)[1]

    def write(self, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """As `sandboxes.Sandbox.write`."""
        self._ask("write", data, path=path, executable=executable)

    def remove(self, path: str) -> None:
        """As `sandboxes.Sandbox.remove`."""
        self._ask("remove", path=path)

    def snapshot(self) -> Snapshot:
        """As `sandboxes.Sandbox.snapshot`."""
        frozen = self.freeze()
        self._fields = {"id": frozen["id"]}
        self._begin()
        return _snapshot(self._place, frozen)

    def freeze(self) -> dict[str, Any]:
        """Freeze the state and end the lease; the new state's id and digest."""
        header, _ = self._ask("snapshot")
        self._open = False
        return header

    def end(self) -> None:
        """End the lease, if it has not ended."""
        if self._open and self._guest.alive:
            self._ask("close")
        self._open = False


@contextmanager
def _prepared(guest: Guest, state: str, area: str, limits: Limits, online: bool) -> Iterator[Fork]:
    """A fork in which set-up commands run: with what they may borrow, and room on the disk."""
    borrowed = borrow() if online else None
    generous = replace(limits, disk_bytes=max(limits.disk_bytes, _SETUP_DISK_BYTES))
    files = borrowed.files if borrowed else {}
    with Fork.lease(guest, "", generous, id=state, area=area, borrowed=files) as fork:
        yield fork


def _run_all(fork: Fork, commands: Sequence[str]) -> None:
    env = borrow().env if commands else {}
    for command in commands:
        done = fork.exec(["sh", "-c", command], timeout_s=_SETUP_TIMEOUT_S, env=env)
        if done.exit_code:
            tail = (done.stdout + done.stderr)[-4000:].decode(errors="replace")
            raise SetupFailed(f"`{command}` ended with exit code {done.exit_code}:\n{tail}")


def _import(guest: Guest, layout: Layout, workspace: Workspace) -> tuple[Repository, str, str]:
    """Copy the workspace in; what git knows of it, its lower directory, and a name of its content."""
    if workspace.path is None:
        return Repository(), layout.mounts[0][1] + layout.workdir, ""
    known = repository(workspace.path)
    guest.send({"op": "import"})
    try:
        with io.BufferedWriter(Upload(guest), 1 << 20) as stream:
            pack(workspace.path, known.tracked or (), layout.leave_out, stream)
    except (OSError, SandboxError):
        guest.close()
        raise
    header = guest.answer()
    return known, header["lower"], header["digest"]


def _listed(fork: Fork) -> Repository:
    """What git, run inside, says of a repository that came with the image."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "ls-files", "-z"]
    done = fork.exec(command, timeout_s=_LISTING_TIMEOUT_S)
    if done.exit_code or done.stdout_bytes > len(done.stdout):
        return Repository()
    try:
        exclude = fork.read(".git/info/exclude").decode("utf-8", "surrogateescape")
    except OSError:
        exclude = ""
    return Repository(names(done.stdout), exclude)


def _settle(guest: Guest, first: str, last: Mapping[str, Any], area: str, **fields: object) -> dict[str, Any]:
    """Make the last state a base, and drop the ones on the way to it."""
    settled, _ = guest.ask("settle", area=area, id=last["id"], **fields)
    for name in {first, last["id"]}:
        guest.ask("discard", area=area, id=name)
    return settled


def _key(*parts: object) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _snapshot(place: str, header: Mapping[str, Any]) -> Snapshot:
    return Snapshot(f"{place}-{header['id']}" if place else header["id"], header["digest"])


def _place(snapshot: Snapshot) -> str:
    return snapshot.id.rpartition("-")[0]


def _state(snapshot: Snapshot) -> str:
    return snapshot.id.rpartition("-")[2]


def _relative(path: str) -> str:
    """A path below the workspace, in its plainest spelling.

    Raises:
        ValueError: it leads elsewhere.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.startswith("/"):
        raise ValueError(f"{path!r} is no path inside the workspace")
    return "/".join(parts)


def _kind(old: object, new: object) -> Any:
    return "added" if old is None else "removed" if new is None else "modified"


def _side(facts: Sequence[Any] | None, contents: io.BytesIO) -> Side | None:
    if facts is None:
        return None
    return Side(cast("str", facts[0]), facts[1], contents.read(facts[2]))


def _ours(path: str, nested: Sequence[str]) -> bool:
    """Whether a path belongs to the repository itself."""
    inside = any(path.startswith(folder) for folder in nested)
    return not inside and not any(part.lower() == ".git" for part in path.split("/"))
