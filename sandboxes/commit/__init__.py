"""The provider for images and engines in which the guest cannot run: a fork is a container, a state is an image.

The image needs only `/bin/sh` and `rm`. This provider is about fifty times slower than the others, and weaker:
`/dev/shm` is empty at the start of each command; `/etc/hosts`, `/etc/hostname` and `/etc/resolv.conf` are the engine's;
times have whole seconds; outside the workspace a digest covers what the engine's `diff` sees (types, modes, sizes and
times), and misses changes to a file that change none of these.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sandboxes import (
    Change,
    Forked,
    Limits,
    Merge,
    SandboxError,
    SandboxLost,
    Snapshot,
    SnapshotMissing,
    Template,
    Workspace,
)
from sandboxes.commit.archives import Contents, Files
from sandboxes.commit.base_state import build_base_state
from sandboxes.commit.container import Box, leased, make, remove
from sandboxes.commit.manifest import Entry, Manifest, delta, differing, nested_in, put_back
from sandboxes.commit.states import State, States
from sandboxes.docker.client import connect, sweep, translated
from sandboxes.docker.images import root_of
from sandboxes.forking.disk_space import FINISH_BYTES, RESERVE_BYTES, require
from sandboxes.forking.lease import Tally
from sandboxes.forking.merge import merge
from sandboxes.forking.provider import kind_of, owned, relative
from sandboxes.git.diff import MAX_FILE_BYTES, PATCHES_KEPT, Difference, Side, fitting, ignored, patch

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = ["CommitProvider"]

_REMOVE_TIMEOUT_S = 600.0


class BaseEntries:
    """The files of one base state, read on demand from a container that never runs. Thread-safe."""

    def __init__(self, client: DockerClient, states: States, base: str, limits: Limits) -> None:
        self._client, self._states, self._name, self._limits = client, states, base, limits
        self._lock = threading.Lock()
        self._container = ""
        self._entries: dict[str, Entry | None] = {}

    def entry(self, path: str) -> Entry | None:
        """Return the base state's entry at an absolute path."""
        with self._lock:
            if path not in self._entries:
                if not self._container:
                    state = self._states.base(self._name)
                    self._container = make(self._client, state, self._limits, self._states.marks)
                self._entries[path] = Files(self._client, self._container).entry(path)
            return self._entries[path]

    def close(self) -> None:
        """Remove the container."""
        if self._container:
            remove(self._client, self._container)


class CommitProvider:
    """Keeps states as Docker images. `store` is the directory that lists them; `why` is appended to the tier's line."""

    def __init__(self, store: Path, limits: Limits | None = None, why: str = "") -> None:
        self._limits = limits or Limits()
        self._why = why
        self._client = connect()
        sweep(self._client)
        self._states = States(self._client, store)
        self._lock = threading.Lock()
        self._tally = Tally()
        self._boxes: set[Box] = set()
        self._closed = False
        self._leased: Counter[str] = Counter()
        self._doomed: dict[str, State] = {}
        self._bases: dict[str, BaseEntries] = {}
        self._patch = lru_cache(PATCHES_KEPT)(self._make_patch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def tier(self) -> str:
        """As `sandboxes.Provider.tier`."""
        because = f" ({self._why})" if self._why else ""
        return (
            "docker commit: SLOW, about a second per command and per state; a container without network or "
            "capabilities, an image per state; NOT EXACT: shared memory is not kept, times are in whole seconds, and "
            f"outside the workspace only changes that the engine's diff shows are noticed{because}"
        )

    @property
    def forked(self) -> Forked:
        """As `sandboxes.Provider.forked`."""
        return self._tally.forked

    def create(self, workspace: Workspace) -> Snapshot:
        """As `sandboxes.Provider.create`."""
        self.require_room()
        with translated():
            return build_base_state(self._client, self._states, workspace, self._limits).snapshot

    @contextmanager
    def at(self, snapshot: Snapshot) -> Iterator[Box]:
        """As `sandboxes.Provider.at`."""
        with translated(), self._lease(snapshot) as (box, _):
            yield box

    @contextmanager
    def scratch(
        self, snapshot: Snapshot, base: Snapshot, put_back: Sequence[str] = (), template: Template | None = None
    ) -> Iterator[Box]:
        """As `sandboxes.Provider.scratch`. Templates are not supported."""
        paths = [relative(path) for path in put_back]
        with translated(), self._lease(base) as (box, base_state):
            self._turn_into(box, base_state, self._load(snapshot), paths)
            yield box

    @contextmanager
    def _lease(self, snapshot: Snapshot) -> Iterator[tuple[Box, State]]:
        if self._closed:
            raise SandboxLost("the provider is closed")
        state = self._load(snapshot)
        with self._lock:
            self._leased[state.id] += 1
        try:
            with leased(self._client, self._states, state, self._limits, base_entry=self._base(state).entry) as box:
                self._boxes.add(box)
                self._tally.count()
                yield box, state
        finally:
            self._boxes = {other for other in self._boxes if other.is_open}
            self._unlease(state)

    def _unlease(self, state: State) -> None:
        with self._lock:
            self._leased[state.id] -= 1
            doomed = None if self._leased[state.id] else self._doomed.pop(state.id, None)
        if doomed:
            self._states.discard(doomed)

    def _load(self, snapshot: Snapshot) -> State:
        if snapshot.id in self._doomed:
            raise SnapshotMissing(f"the snapshot {snapshot.id} was discarded")
        return self._states.load(snapshot.id)

    def _base(self, state: State) -> BaseEntries:
        with self._lock:
            if state.base not in self._bases:
                self._bases[state.base] = BaseEntries(self._client, self._states, state.base, self._limits)
            return self._bases[state.base]

    def _turn_into(self, box: Box, base: State, target: State, restored: Sequence[str]) -> None:
        """Give a fork of the base the workspace of `target`, except for the paths that are put back."""
        tree = self._states.manifest(base)
        changed = delta(tree, put_back(tree, self._states.manifest(target), restored))
        gone = [f"{box.workdir}/{path}" for path in _outermost([path for path in changed if changed[path] is None])]
        if gone:
            done = box.exec(["rm", "-rf", "--", *gone], timeout_s=_REMOVE_TIMEOUT_S, cwd="/")
            if done.exit_code:
                raise SandboxError(f"cannot remove {gone[0]}: {done.stderr.decode(errors='replace')}")
        added = {path for path, entry in changed.items() if entry is not None}
        if added:
            with self._lease(target.snapshot) as (source, _), source.files.some(box.workdir, added) as archive:
                box.files.put("/", archive)

    def changes(self, old: Snapshot, new: Snapshot) -> tuple[Change, ...]:
        """As `sandboxes.Provider.changes`."""
        _, _, before, after = self._both(old, new)
        return tuple(
            Change(path, kind_of(_leaf(before, path), _leaf(after, path))) for path in differing(before, after)
        )

    def diff(self, old: Snapshot, new: Snapshot, *, context: int = 3) -> bytes:
        """As `sandboxes.Provider.diff`. The last patches are kept, because a search asks for each several times."""
        self._load(old)
        self._load(new)
        return self._patch(old, new, context)

    def _make_patch(self, old: Snapshot, new: Snapshot, context: int) -> bytes:
        return patch(self._differences_to_keep(old, new), context=context)

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Merge:
        """As `sandboxes.Provider.merge`."""
        return merge(self._differences_to_keep(base, ours), self._differences_to_keep(base, theirs))

    def _differences_to_keep(self, old: Snapshot, new: Snapshot) -> list[Difference]:
        """Return the differences that belong in a patch."""
        one, other, before, after = self._both(old, new)
        tracked = self._states.base(one.base).tracked
        nested = nested_in(after)
        paths = [path for path in differing(before, after) if owned(path, nested)]
        rules = {path for path in after if path.rpartition("/")[2] == ".gitignore" and after[path][0] == "f"}
        with translated():
            sides = self._contents(one, before, paths), self._contents(other, after, {*paths, *rules})
        if too_large := rules & sides[1].large.keys():
            raise SandboxError(f"{min(too_large)!r} is too large to read its ignore rules; make it smaller")
        texts = {path: sides[1].contents[path].decode("utf-8", "surrogateescape") for path in rules}
        untracked = [path for path in paths if path not in tracked]
        left_out = ignored(untracked, texts, self._states.base(one.base).exclude)
        sizes = {path: (sides[0].size(path), sides[1].size(path)) for path in paths if path not in left_out}
        return [
            Difference(path, _side(before, path, sides[0].contents), _side(after, path, sides[1].contents))
            for path in fitting(sizes)
        ]

    def _both(self, old: Snapshot, new: Snapshot) -> tuple[State, State, Manifest, Manifest]:
        one, other = self._load(old), self._load(new)
        if one.base != other.base:
            raise SandboxError(f"{old.id} and {new.id} do not have the same base state")
        return one, other, self._states.manifest(one), self._states.manifest(other)

    def _contents(self, state: State, tree: Manifest, paths: Sequence[str] | set[str]) -> Contents:
        files = {path for path in paths if path in tree and tree[path][0] in ("f", "l")}
        if not files:
            return Contents({}, {})
        with self._lease(state.snapshot) as (box, _):
            return box.files.contents(state.workdir, files, MAX_FILE_BYTES)

    def discard(self, *snapshots: Snapshot) -> None:
        """As `sandboxes.Provider.discard`. A state that is leased is removed when its last lease ends."""
        self._patch.cache_clear()  # a discarded state has no patch any more
        for state in [self._load(snapshot) for snapshot in snapshots]:
            with self._lock:
                if self._leased[state.id]:
                    self._doomed[state.id] = state
                    continue
                base = self._bases.pop(state.id, None)
            with translated():
                if base:
                    base.close()
                self._states.discard(state)

    def retain(self, snapshots: Collection[Snapshot]) -> None:
        """As `sandboxes.Provider.retain`."""
        kept = {snapshot.id for snapshot in snapshots}
        with translated():
            for name in self._states.names():
                if name not in kept:
                    self._states.discard(self._states.load(name))

    def require_room(self, *, to_finish: bool = False) -> None:
        """As `sandboxes.Provider.require_room`, for the disk only: images share layers, so their sizes mean little."""
        with translated():
            disk = root_of(self._client)
        if disk:
            require(disk, FINISH_BYTES if to_finish else RESERVE_BYTES, "continuing safely")

    def close(self) -> None:
        """As `sandboxes.Provider.close`."""
        with self._lock:
            self._closed = True
            boxes, bases = list(self._boxes), list(self._bases.values())
            self._boxes.clear()
            self._bases.clear()
        with translated():
            for box in boxes:
                box.end()
            for base in bases:
                base.close()
        self._client.close()


def _outermost(paths: Sequence[str]) -> list[str]:
    """List the paths that are not below another one in `paths`, sorted."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not kept or not path.startswith(kept[-1] + "/"):
            kept.append(path)
    return kept


def _leaf(tree: Manifest, path: str) -> Entry | None:
    """The entry at a path, or None if there is none or it is a directory."""
    entry = tree.get(path)
    return None if entry is None or entry[0] == "d" else entry


def _side(tree: Manifest, path: str, contents: dict[str, bytes]) -> Side | None:
    entry = _leaf(tree, path)
    return Side(entry[0], entry[1], contents.get(path, b"")) if entry else None
