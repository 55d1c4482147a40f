"""Trees: the workspace of a state as a git tree."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.run.eviction import kept_patch
from agent.run.run import Run
from agent.run.tree.node import Node
from sandboxes import Provider, SandboxError, Snapshot, SnapshotMissing
from sandboxes.forking.workspace_files import names
from sandboxes.git.command import Git

_EMPTY = "rm -rf -- ./* ./.[!.]* ./..?*"
_TIMEOUT_S = 600.0
_NOTHING = "0" * 40


class StateGone(Exception):
    """A state no longer exists and its patch was not kept; the message says why."""


class Trees:
    """Writes the trees of a run's states to a repository. `provider` holds the states; None: they were removed."""

    def __init__(self, git: Git, run: Run, provider: Provider | None) -> None:
        self._git, self._run, self._provider = git, run, provider

    def of_root(self, base: str) -> str:
        """The name of the root state's tree. `base` is the commit that it began from, or empty: its submodules are
        copied.

        Raises:
            StateGone: it was removed.
        """
        root = self._run.tree.root.snapshot
        with self._index() as index:
            self._apply(self._whole(root), index)
            changed = [*self._submodules(base), *self._byte_code(base, index)]
            self._git.run("update-index", "-z", "--index-info", stdin=b"".join(changed), env=index)
            return self._git.run("write-tree", env=index).decode().strip()

    def of(self, node: Node, root: str) -> str:
        """The name of a state's tree; `root` is the name of the root state's tree.

        Raises:
            StateGone: it was removed, and its patch was not kept.
        """
        patch = self._patch(node)
        with self._index() as index:
            self._git.run("read-tree", root, env=index)
            self._apply(patch, index)
            return self._git.run("write-tree", env=index).decode().strip()

    def _patch(self, node: Node) -> bytes:
        """The patch against the root state: as it was recorded, else from the states themselves."""
        if kept := kept_patch(self._run, node.id):
            return self._run.journal.get_blob(kept)
        return self._diff(self._run.tree.root.snapshot, node.snapshot)

    def _diff(self, old: Snapshot, new: Snapshot) -> bytes:
        if self._provider is None:
            raise StateGone("its state was removed")
        try:
            return self._provider.diff(old, new)
        except SnapshotMissing as error:
            raise StateGone(str(error)) from error

    def _whole(self, state: Snapshot) -> bytes:
        """The patch that creates all files of a state: the difference to a fork in which they are removed."""
        if self._provider is None:
            raise StateGone("its state was removed")
        with self._provider.at(state) as box:
            done = box.exec(["/bin/sh", "-c", _EMPTY], timeout_s=_TIMEOUT_S)
            if done.exit_code:
                raise SandboxError(f"cannot empty a fork: {done.stderr.decode(errors='replace').strip()}")
            empty = box.snapshot()
        try:
            return self._provider.diff(empty, state)
        finally:
            self._provider.discard(empty)

    def _apply(self, patch: bytes, index: dict[str, str]) -> None:
        if patch:
            self._git.run("apply", "--cached", "--whitespace=nowarn", stdin=patch, env=index)

    def _submodules(self, base: str) -> list[bytes]:
        """Index entries for the submodules of a commit, which patches do not contain."""
        listing = self._git.run("ls-tree", "-rz", base) if base else b""
        entries = [entry.split(b"\t", 1) for entry in listing.split(b"\0") if entry.startswith(b"160000 ")]
        return [b"160000 %s\t%s\0" % (facts.split()[2], path) for facts, path in entries]

    def _byte_code(self, base: str, index: dict[str, str]) -> list[bytes]:
        """Index entries that remove the byte code that the sandbox created (`Workspace.byte_code`)."""
        original = set(names(self._git.run("ls-tree", "-rz", "--name-only", base))) if base else set()
        indexed = names(self._git.run("ls-files", "-z", env=index))
        ours = [name for name in indexed if name.endswith(".pyc") and "__pycache__/" in name and name not in original]
        return [f"0 {_NOTHING}\t".encode() + os.fsencode(name) + b"\0" for name in ours]

    @contextmanager
    def _index(self) -> Iterator[dict[str, str]]:
        """An environment in which git uses a separate, empty index."""
        with tempfile.TemporaryDirectory(prefix="ramify-index-") as directory:
            yield {"GIT_INDEX_FILE": str(Path(directory, "index"))}
