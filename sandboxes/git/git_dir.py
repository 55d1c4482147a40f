"""Copies the git directory of a linked worktree or a submodule, which is outside its work tree.

Without a git directory, git would not work in the copy.

Invariant: only a directory that names this work tree is copied, because a file `.git` can name any directory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sandboxes import SandboxError
from sandboxes.git.foreign import Location, locate, opened

_OF_WORK_TREE = ("HEAD", "index", "info/sparse-checkout")
_IN_COMMON = ("objects", "refs", "packed-refs", "reftable", "shallow", "info/exclude", "info/attributes")
_HERE = b"\n[core]\n\tbare = false\n\tworktree = ..\n"
"""Appended settings override earlier ones. The path is relative to the git directory."""


def detached(folder: Path, root: Path) -> list[tuple[Path | bytes, str]]:
    """List what to copy instead of the file `.git` in a folder when `root` is copied.

    The result has directories with their content, files, and texts, each with its name in the copied git directory, ""
    first. They are what git needs for reading: no hooks, no logs, nothing from other work trees. The result is empty if
    `.git` is not a file, or if it can stay because it names a directory that is copied, too, or one that does not name
    this folder.
    """
    if not _is_file(folder / ".git"):
        return []
    found = locate(folder)
    if found is None or found.work_tree != folder.resolve():
        return []
    if found.git_dir.resolve().is_relative_to(root.resolve()) or not _knows(found, folder.resolve()):
        return []
    return [(found.git_dir, ""), (found.git_dir, "info"), *_parts(found), *_settings(found)]


def _knows(found: Location, folder: Path) -> bool:
    """Whether a git directory names this folder as its work tree."""
    git_dir, common_dir = found.git_dir.resolve(), found.common_dir.resolve()
    if git_dir != common_dir:
        back = _text(git_dir / "gitdir").rstrip(b"\r\n")
        return git_dir.parent == common_dir / "worktrees" and _same(git_dir / os.fsdecode(back), folder / ".git")
    try:
        with opened(found) as view:
            named = view.settings.get("core.worktree", "")
    except SandboxError:
        return False
    return bool(named) and _same(git_dir / named, folder)


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _parts(found: Location) -> Iterator[tuple[Path, str]]:
    """Yield the files and directories to copy, without links, which could lead anywhere."""
    shared = sorted(path.name for path in found.git_dir.glob("sharedindex.*"))
    for folder, names in ((found.git_dir, (*_OF_WORK_TREE, *shared)), (found.common_dir, _IN_COMMON)):
        for name in names:
            steps = [folder / part for part in (name, name.partition("/")[0])]
            if (folder / name).exists() and not any(step.is_symlink() for step in steps):
                yield folder / name, name


def _settings(found: Location) -> Iterator[tuple[bytes, str]]:
    """Yield the repository's settings, with the new place of the work tree."""
    for folder, name in ((found.common_dir, "config"), (found.git_dir, "config.worktree")):
        if text := _text(folder / name):
            yield text + _HERE, name


def _text(path: Path) -> bytes:
    return path.read_bytes() if _is_file(path) else b""


def _is_file(path: Path) -> bool:
    """Whether the path is a regular file and not a link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
