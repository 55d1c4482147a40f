"""Replaces files of a directory, all of them or none.

The new files are first written inside the directory, so that they only have to be moved. After a failure, all moves are
undone.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from sandboxes.git.diff import Difference, Side


def exchange(root: Path, differences: Sequence[Difference]) -> None:
    """Replace the old side of each difference by the new one, keeping owner and permissions. Folders are made as
    needed, and removed when they become empty.

    Raises:
        OSError: a file or folder is in the way, or cannot be written. Nothing was changed.
    """
    with ExitStack() as undo:
        aside = Path(tempfile.mkdtemp(prefix=".ramify-", dir=root))
        undo.callback(shutil.rmtree, aside)
        for number, difference in enumerate(differences):
            if difference.new is not None:
                _make(aside / f"new-{number}", difference.new, root / difference.path)
        for number, difference in enumerate(differences):
            if difference.old is not None:
                _move(root / difference.path, aside / f"old-{number}", undo)
        for number, difference in enumerate(differences):
            if difference.new is not None:
                _clear(root / difference.path, aside / f"folder-{number}", undo)
                _move(aside / f"new-{number}", root / difference.path, undo)
        undo.pop_all()
    shutil.rmtree(aside)
    for difference in differences:
        if difference.new is None:
            _remove_empty(root, (root / difference.path).parent)


def _make(new: Path, side: Side, place: Path) -> None:
    """Write at `new` the file that will be moved to `place`, with the owner and permissions of the file there."""
    old = place.lstat() if os.path.lexists(place) else None
    if side.kind == "l":
        new.symlink_to(os.fsdecode(side.content))
    else:
        executable = bool(side.mode & 0o100)
        new.touch(0o777 if executable else 0o666)
        new.write_bytes(side.content)
        if old is not None and stat.S_ISREG(old.st_mode):
            new.chmod(_permissions(old.st_mode, executable=executable))
    _give(new, old or _nearest(place).stat())


def _permissions(mode: int, *, executable: bool) -> int:
    if bool(mode & 0o100) == executable:
        return mode & 0o777
    return mode & 0o777 | (mode & 0o444) >> 2 if executable else mode & 0o666


def _give(place: Path, owner: os.stat_result) -> None:
    """If this process is root, set the owner of a file: in a container, root often works on another user's files."""
    if os.geteuid() == 0:
        os.lchown(place, owner.st_uid, owner.st_gid)


def _nearest(place: Path) -> Path:
    """Return the nearest existing folder above a place."""
    return next(folder for folder in place.parents if folder.is_dir())


def _move(old: Path, new: Path, undo: ExitStack) -> None:
    os.rename(old, new)  # noqa: PTH104  # its error names the file
    undo.callback(os.rename, new, old)


def _clear(place: Path, aside: Path, undo: ExitStack) -> None:
    """Make the folders above a place, and remove an empty folder at the place."""
    above = _nearest(place)
    for folder in reversed(place.parents[: len(place.relative_to(above).parts) - 1]):
        folder.mkdir()
        undo.callback(folder.rmdir)
        _give(folder, above.stat())
    if place.is_dir():
        if any(files for _, _, files in os.walk(place)):
            raise OSError(errno.ENOTEMPTY, "it is a folder with files that the patch does not mention", str(place))
        _move(place, aside, undo)


def _remove_empty(root: Path, folder: Path) -> None:
    with suppress(OSError):
        while folder != root:
            folder.rmdir()
            folder = folder.parent
