"""A provider of sandboxes on top of any `Launcher`: leases, base states, patches.

A patch leaves out new files that git ignores, everything in `.git`, and nested repositories.
"""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, Literal, Self, cast

from sandboxes import (
    Change,
    Forked,
    Limits,
    Merge,
    Provider,
    SandboxLost,
    SandboxUnavailable,
    Snapshot,
    SnapshotMissing,
    StoreFull,
    Template,
    Workspace,
)
from sandboxes.forking.arguments import require_text
from sandboxes.forking.base_state import BaseStateBuilder
from sandboxes.forking.disk_space import FINISH_BYTES, RESERVE_BYTES, require
from sandboxes.forking.environment_cache import tidy
from sandboxes.forking.guest_client import Guest
from sandboxes.forking.launcher import Launcher
from sandboxes.forking.lease import LeasedSandbox, Tally, image_of, snapshot_of, state
from sandboxes.forking.merge import merge
from sandboxes.forking.workspace_files import weight
from sandboxes.git.diff import PATCHES_KEPT, Difference, Side, fitting, ignored, patch

_PROOF_TIMEOUT_S = 30.0

_WEIGH_EVERY_S = 30.0


class ForkingProvider:
    """Keeps states in guests' stores and leases forks of them. A guest has one lease at a time; idle guests are reused.

    `paranoid`: a digest of each frozen state is recorded, and a fork that does not match it is refused.
    """

    def __init__(self, launcher: Launcher, limits: Limits, *, paranoid: bool = False) -> None:
        self._launcher = launcher
        self._limits = limits
        self._tally = Tally(checked=paranoid)
        self._lock = threading.Lock()
        self._guests: set[Guest] = set()
        self._idle: dict[str, list[Guest]] = {}
        self._leased: Counter[str] = Counter()
        self._doomed: set[str] = set()
        self._weigh_at = 0.0
        self._closed = False
        self._patch = lru_cache(PATCHES_KEPT)(self._make_patch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def tier(self) -> str:
        """As `sandboxes.Provider.tier`."""
        return self._launcher.tier

    @property
    def forked(self) -> Forked:
        """As `sandboxes.Provider.forked`."""
        return self._tally.forked

    def close(self) -> None:
        """As `sandboxes.Provider.close`."""
        with self._lock:
            self._closed = True
            guests = list(self._guests)
            self._guests.clear()
            self._idle.clear()
        for guest in guests:
            guest.close()
        self._launcher.close()

    def create(self, workspace: Workspace) -> Snapshot:
        """As `sandboxes.Provider.create`."""
        layout = self._launcher.layout(workspace)
        if disk := self._launcher.disk:
            size = weight(workspace.path, layout.leave_out) if workspace.path else 0
            require(disk, 2 * size + 2 * RESERVE_BYTES, "a run on this workspace")
        with self._guest(layout.image) as guest:
            online = partial(self._guest, layout.image, network=True)
            builder = BaseStateBuilder(guest, layout, workspace, self._limits, online, self.forked.checked)
            base = builder.with_image_environment().build()
            if workspace.setup or workspace.environment:
                tidy(guest, self._launcher.lives)
        return snapshot_of(layout.image, base)

    @contextmanager
    def at(self, snapshot: Snapshot) -> Iterator[LeasedSandbox]:
        """As `sandboxes.Provider.at`."""
        with self._lease(snapshot, {}, _rank_for_box) as fork:
            yield fork

    @contextmanager
    def scratch(
        self, snapshot: Snapshot, base: Snapshot, put_back: Sequence[str] = (), template: Template | None = None
    ) -> Iterator[LeasedSandbox]:
        """As `sandboxes.Provider.scratch`."""
        self._require(base)
        fields = {
            "outside": state(base),
            "put_back": [relative(path) for path in put_back],
            "template": template is not None,
        }
        needed = (template, state(base)) if template else None
        with self._lease(snapshot, fields, partial(_rank_for_run, needed), needed) as fork:
            yield fork

    @contextmanager
    def _lease(
        self,
        snapshot: Snapshot,
        fields: Mapping[str, object],
        rank: Callable[[Guest], int],
        template: tuple[Template, str] | None = None,
    ) -> Iterator[LeasedSandbox]:
        self._require(snapshot)
        needed = [state(snapshot), *([str(fields["outside"])] if "outside" in fields else [])]
        with self._guest(image_of(snapshot), rank) as guest:
            if template is not None:
                guest.ensure_template(template, check=self.forked.checked)
            with self._lock:
                self._leased.update(needed)
            try:
                with LeasedSandbox.lease(
                    guest, image_of(snapshot), self._limits, self._tally, id=state(snapshot), **fields
                ) as fork:
                    yield fork
            finally:
                self._unlease(guest, needed)

    def _unlease(self, guest: Guest, needed: Sequence[str]) -> None:
        with self._lock:
            self._leased.subtract(needed)
            free = {name for name in needed if name in self._doomed and not self._leased[name]}
            self._doomed -= free if guest.alive else set()
        if free and guest.alive:
            guest.ask("discard", ids=sorted(free))

    def _require(self, snapshot: Snapshot) -> None:
        if state(snapshot) in self._doomed:
            raise SnapshotMissing(f"the snapshot {snapshot.id} was discarded")

    def changes(self, old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
        """As `sandboxes.Provider.changes`."""
        header, _ = self._ask_of("compare", old, new, rules=False)
        return tuple(Change(path, kind_of(before, after)) for path, before, after in header["changes"])

    def diff(self, old: Snapshot, new: Snapshot, *, context: int = 3) -> bytes:
        """As `sandboxes.Provider.diff`. The last patches are kept, because a search asks for each several times."""
        self._require(old)
        self._require(new)
        return self._patch(old, new, context)

    def _make_patch(self, old: Snapshot, new: Snapshot, context: int) -> bytes:
        return patch(self._differences_to_keep(old, new), context=context)

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Merge:
        """As `sandboxes.Provider.merge`."""
        return merge(self._differences_to_keep(base, ours), self._differences_to_keep(base, theirs))

    def _differences_to_keep(self, old: Snapshot, new: Snapshot) -> list[Difference]:
        """Return the differences that belong in a patch."""
        header, _ = self._ask_of("compare", old, new, rules=True)
        tracked = frozenset(header["tracked"])
        untracked = [path for path, _, _ in header["changes"] if path not in tracked]
        left_out = ignored(untracked, header["ignores"], header["exclude"])
        changed = {
            path: sides for path, *sides in header["changes"] if path not in left_out and owned(path, header["nested"])
        }
        paths = fitting({path: (_size(old), _size(new)) for path, (old, new) in changed.items()})
        payload = self._ask_of("contents", old, new, paths=paths)[1] if paths else b""
        contents = io.BytesIO(payload)
        return [Difference(path, *(_side(side, contents) for side in changed[path])) for path in paths]

    def _ask_of(self, op: str, old: Snapshot, new: Snapshot, **fields: object) -> tuple[dict[str, Any], bytes]:
        """Send a request about two states."""
        self._require(old)
        self._require(new)
        with self._guest(image_of(new)) as guest:
            return guest.ask(op, old=state(old), new=state(new), **fields)

    def discard(self, *snapshots: Snapshot) -> None:
        """As `sandboxes.Provider.discard`. A state that is leased is removed when its last lease ends."""
        self._patch.cache_clear()  # a discarded state has no patch any more
        names_by_image: dict[str, list[str]] = {}
        for snapshot in snapshots:
            self._require(snapshot)
            with self._lock:
                if self._leased[state(snapshot)]:
                    self._doomed.add(state(snapshot))
                else:
                    names_by_image.setdefault(image_of(snapshot), []).append(state(snapshot))
        for image, names in names_by_image.items():
            with self._guest(image) as guest:
                guest.ask("discard", ids=names)

    def retain(self, snapshots: Collection[Snapshot]) -> None:
        """As `sandboxes.Provider.retain`."""
        for image in {image_of(snapshot) for snapshot in snapshots}:
            with self._guest(image) as guest:
                guest.ask("retain", ids=[state(snapshot) for snapshot in snapshots])

    def require_room(self, *, to_finish: bool = False) -> None:
        """As `sandboxes.Provider.require_room`. The size of the states is checked only every 30 seconds."""
        if disk := self._launcher.disk:
            require(disk, FINISH_BYTES if to_finish else RESERVE_BYTES, "continuing safely")
        if not to_finish:
            self._weigh()

    def _weigh(self) -> None:
        with self._lock:
            images = [image for image, idle in self._idle.items() if idle]
            due = time.monotonic() >= self._weigh_at and images
            self._weigh_at = time.monotonic() + _WEIGH_EVERY_S if due else self._weigh_at
        if due:
            with self._guest(images[0]) as guest:
                used = guest.ask("usage")[0]["bytes"]
            if used > self._limits.store_bytes:
                allowed = self._limits.store_bytes
                raise StoreFull(
                    f"the states of this run take {used >> 20} MiB of at most {allowed >> 20} MiB; check what its "
                    "commands leave on the disk, or raise sandbox.limits.store_bytes"
                )

    @contextmanager
    def _guest(
        self,
        image: str,
        rank: Callable[[Guest], int] | None = None,
        *,
        network: bool = False,
    ) -> Iterator[Guest]:
        """Reserve a guest for the block: the idle one with the highest rank, if that is above 0, or else a new one.
        A guest with network access is closed at the end of the block."""
        rank = rank or partial(_rank_for_run, None)
        with self._lock:
            idle = [] if network else self._idle.setdefault(image, [])
            guest = max(idle, key=rank, default=None)
            if guest is not None and rank(guest) > 0:
                idle.remove(guest)
            else:
                guest = None
        if guest is None:
            guest = Guest(self._launcher.start(image, network=network))
            with self._lock:
                self._guests.add(guest)
        try:
            if self._closed:
                raise SandboxLost("the provider is closed")
            yield guest
        finally:
            self._put(guest, image, keep=not network)

    def _put(self, guest: Guest, image: str, *, keep: bool) -> None:
        with self._lock:
            keep = keep and guest.alive and guest in self._guests and not self._closed
            if keep:
                self._idle.setdefault(image, []).append(guest)
            else:
                self._guests.discard(guest)
        if not keep:
            guest.close()


def require_shell(provider: Provider, workspace: Workspace, timeout_s: float = _PROOF_TIMEOUT_S) -> None:
    """Check that a shell runs in a state of the workspace, which should be small. The state is discarded.

    Raises:
        SandboxUnavailable, ImageMissing: a shell does not run; the message gives the reason.
    """
    base = provider.create(workspace)
    with provider.at(base) as fork:
        done = fork.exec(["/bin/sh", "-c", ":"], timeout_s=timeout_s)
    provider.discard(base)
    if done.exit_code:
        raise SandboxUnavailable(f"a shell ended with {done.exit_code}: {done.stderr.decode(errors='replace')}")


def relative(path: str) -> str:
    """Normalise a path relative to the workspace.

    Raises:
        ValueError: the path leads outside the workspace or names none of its files.
        SandboxError: no file can have this name.
    """
    require_text(path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.startswith("/"):
        raise ValueError(f"{path!r} is not a path inside the workspace")
    return "/".join(parts)


def kind_of(old: object, new: object) -> Literal["added", "modified", "removed"]:
    """Return the kind of change between two sides; a side is None if the path does not exist there."""
    return "added" if old is None else "removed" if new is None else "modified"


def _rank_for_box(guest: Guest) -> int:
    """Rank a guest for a fork that may stay open long: 0 if the guest runs a template, which test runs need."""
    return int(guest.template is None)


def _rank_for_run(needed: tuple[Template, str] | None, guest: Guest) -> int:
    """Rank a guest for short work that needs this template, or no template. A guest with another template ranks higher
    than one without: its template is replaced before a further guest starts one."""
    return 3 if guest.template == needed else 2 if guest.template else 1


def _size(facts: Sequence[Any] | None) -> int | None:
    return None if facts is None else int(facts[2])


def _side(facts: Sequence[Any] | None, contents: io.BytesIO) -> Side | None:
    if facts is None:
        return None
    return Side(cast("str", facts[0]), facts[1], contents.read(facts[2]))


def owned(path: str, nested: Sequence[str]) -> bool:
    """Whether a path belongs to the workspace's own repository: not to a nested one, and not to a `.git` directory."""
    inside = any(path.startswith(folder) for folder in nested)
    return not inside and not any(part.lower() == ".git" for part in path.split("/"))
