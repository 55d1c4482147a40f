"""Reads, writes and restores files of a fork, from inside it."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from typing import List, Optional, Tuple

from .duplicate import duplicate, imitate
from .entries import exists, is_directory, open_at, open_directory


def read_file(path: str, limit: int) -> bytes:
    """Return the content of a regular file."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        facts = os.fstat(file.fileno())
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if facts.st_size > limit:
            raise OSError(errno.EFBIG, "larger than %d bytes" % limit, path)
        return file.read()


def write_file(path: str, data: bytes, executable: Optional[bool], owner: Tuple[int, int]) -> None:
    """Create or replace a file; new files and directories belong to `owner`. The time of an existing file increases by
    at least a second, because byte code compares whole seconds."""
    parent = os.path.dirname(path) or "."
    try:
        make_directories(parent, owner)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from error
    try:
        old: Optional[os.stat_result] = os.stat(path)
    except FileNotFoundError:
        old = None
    if old and not stat.S_ISREG(old.st_mode) and not stat.S_ISDIR(old.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    with open(path, "wb") as file:
        file.write(data)
        if old is None and owner != (0, 0):
            os.fchown(file.fileno(), *owner)
    if executable is not None:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        os.chmod(path, mode | 0o111 if executable else mode & ~0o111)
    if old:
        moved = max(time.time_ns(), (old.st_mtime_ns // 10**9 + 1) * 10**9)
        os.utime(path, ns=(moved, moved))


def make_directories(path: str, owner: Tuple[int, int]) -> None:
    """Make a directory and its missing parents."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for directory in reversed(missing):
        os.mkdir(directory)
        if owner != (0, 0):
            os.chown(directory, *owner)


def remove(path: str) -> None:
    """Remove a file, a link or a whole directory, if it exists."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return


def restore(base: Optional[int], workspace: int, names: List[str]) -> None:
    """Make a path the same as in `base`. Links are replaced, never followed."""
    name, rest = names[0], names[1:]
    original = open_directory(base, name) if base is not None else None
    there = open_directory(workspace, name) if rest else None
    try:
        if not rest:
            clear(workspace, name)
            if base is not None and exists(base, name):
                copy(base, workspace, name)
        elif there is not None:
            restore(original, there, rest)
        elif original is not None:
            clear(workspace, name)
            os.mkdir(name, stat.S_IMODE(os.fstat(original).st_mode), dir_fd=workspace)
            there = open_at(workspace, name, os.O_DIRECTORY)
            restore(original, there, rest)
    finally:
        for descriptor in (original, there):
            if descriptor is not None:
                os.close(descriptor)


def clear(directory: int, name: str) -> None:
    """Remove whatever has this name, if anything."""
    if is_directory(directory, name):
        inside = open_at(directory, name, os.O_DIRECTORY)
        for child in os.listdir(inside):
            clear(inside, child)
        os.close(inside)
        os.rmdir(name, dir_fd=directory)
    elif exists(directory, name):
        os.unlink(name, dir_fd=directory)


def copy(source: int, target: int, name: str) -> None:
    """Copy a file or a whole directory to a directory that has nothing of this name."""
    inside = open_directory(source, name)
    if inside is None:
        duplicate(source, target, name)
        return
    os.mkdir(name, dir_fd=target)
    outside = open_at(target, name, os.O_DIRECTORY)
    for child in os.listdir(inside):
        copy(inside, outside, child)
    os.close(inside)
    os.close(outside)
    imitate(source, target, name)


def filled(data: bytes) -> int:
    """Return the descriptor of an unnamed file that contains these bytes."""
    descriptor = os.memfd_create("data")
    with open(os.dup(descriptor), "wb") as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def find_program(name: str, path: str) -> str:
    """Find a program as a shell does."""
    if "/" in name:
        return name
    refused = ""
    for directory in path.split(":"):
        candidate = os.path.join(directory, name)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            refused = candidate
    if refused:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), refused)
    raise FileNotFoundError(errno.ENOENT, "command not found", name)
