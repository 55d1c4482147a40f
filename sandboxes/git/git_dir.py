"""The git directory of a copied work tree whose own lies elsewhere: a linked worktree's, or a submodule's. Without one,
git would not work in the copy.

Law: only a directory that knows its work tree is copied. A file `.git` can name any place of this machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from sandboxes import SandboxError
from sandboxes.git.foreign import Location, locate, opened

__all__ = ["detached"]

_OF_WORK_TREE = ("HEAD", "index", "info/sparse-checkout")
_IN_COMMON = ("objects", "refs", "packed-refs", "reftable", "shallow", "info/exclude", "info/attributes")
_HERE = b"\n[core]\n\tbare = false\n\tworktree = ..\n"
"""The last settings count. What a path is relative to is the git directory."""


def detached(folder: Path, root: Path) -> list[tuple[Path | bytes, str]]:
    """What is copied in the place of the file `.git` in a folder, when `root` is copied: directories with all that is
    in them, files, and texts, each with its name in the git directory of the copy, "" first. It is what git needs to
    read: no hooks, no logs, nothing of other work trees. Nothing, where the file is none or can stay: it leads to a
    place that is copied, too, or to one that knows nothing of this folder."""
    if not _is_file(folder / ".git"):
        return []
    found = locate(folder)
    if found is None or found.work_tree != folder.resolve():
        return []
    if found.git_dir.resolve().is_relative_to(root.resolve()) or not _knows(found, folder.resolve()):
        return []
    return [(found.git_dir, ""), (found.git_dir, "info"), *_parts(found), *_settings(found)]


def _knows(found: Location, folder: Path) -> bool:
    """Whether a git directory says that this is its work tree."""
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
    """No links: they could lead anywhere."""
    shared = sorted(path.name for path in found.git_dir.glob("sharedindex.*"))
    for folder, names in ((found.git_dir, (*_OF_WORK_TREE, *shared)), (found.common_dir, _IN_COMMON)):
        for name in names:
            steps = [folder / part for part in (name, name.partition("/")[0])]
            if (folder / name).exists() and not any(step.is_symlink() for step in steps):
                yield folder / name, name


def _settings(found: Location) -> Iterator[tuple[bytes, str]]:
    """Those of the repository, and where the work tree is now."""
    for folder, name in ((found.common_dir, "config"), (found.git_dir, "config.worktree")):
        if text := _text(folder / name):
            yield text + _HERE, name


def _text(path: Path) -> bytes:
    return path.read_bytes() if _is_file(path) else b""


def _is_file(path: Path) -> bool:
    """And no link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
