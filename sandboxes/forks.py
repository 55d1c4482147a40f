"""A provider of sandboxes over whatever starts guests: leases, base states, patches."""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, cast

from sandboxes import Change, Limits, Snapshot, SnapshotMissing, Workspace
from sandboxes.fork import Fork, place, snapshot_of, state
from sandboxes.founding import environment, found
from sandboxes.frames import Guest
from sandboxes.launch import Launcher
from sandboxes.patches import Difference, Side, ignored, patch

__all__ = ["Forks"]


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
        built = None
        if workspace.environment:
            with self._guest(layout.place, network=True) as guest:
                built = environment(guest, layout, workspace, self._limits)
        with self._guest(layout.place, network=bool(workspace.setup)) as guest:
            return snapshot_of(layout.place, found(guest, layout, workspace, self._limits, built))

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
        with self._lease(snapshot, {"outside": state(base), "put_back": paths}) as fork:
            yield fork

    @contextmanager
    def _lease(self, snapshot: Snapshot, fields: Mapping[str, object]) -> Iterator[Fork]:
        self._require(snapshot)
        needed = [state(snapshot), *([str(fields["outside"])] if "outside" in fields else [])]
        with self._guest(place(snapshot)) as guest:
            with self._lock:
                self._leased.update(needed)
            try:
                with Fork.lease(guest, place(snapshot), self._limits, id=state(snapshot), **fields) as fork:
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
        if state(snapshot) in self._doomed:
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
        with self._guest(place(new)) as guest:
            return guest.ask("compare", old=state(old), new=state(new), content=content)

    def discard(self, snapshot: Snapshot) -> None:
        """As `sandboxes.Provider.discard`. What a running lease stands on goes when that ends."""
        self._require(snapshot)
        with self._lock:
            if self._leased[state(snapshot)]:
                self._doomed.add(state(snapshot))
                return
        with self._guest(place(snapshot)) as guest:
            guest.ask("discard", id=state(snapshot))

    @contextmanager
    def _guest(self, where: str, *, network: bool = False) -> Iterator[Guest]:
        """A guest of our own for the block; one with a network ends with it."""
        with self._lock:
            idle = self._idle.get(where) if not network else None
            guest = idle.pop() if idle else None
        if guest is None:
            guest = Guest(self._launcher.start(where, network=network))
            with self._lock:
                self._guests.add(guest)
        try:
            yield guest
        finally:
            self._put(guest, where, keep=not network)

    def _put(self, guest: Guest, where: str, *, keep: bool) -> None:
        with self._lock:
            keep = keep and guest.alive and guest in self._guests
            if keep:
                self._idle.setdefault(where, []).append(guest)
            else:
                self._guests.discard(guest)
        if not keep:
            guest.close()


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
