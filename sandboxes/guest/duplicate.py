"""Makes exact copies of files: content with its holes, mode, owner, extended attributes and time."""

from __future__ import annotations

import errno
import os
import stat
from typing import Dict

from .entries import XATTR_KINDS, counted, open_at


def duplicate(source: int, target: int, name: str) -> None:
    """Copy anything except a directory to a path that does not exist."""
    facts = os.lstat(name, dir_fd=source)
    if stat.S_ISLNK(facts.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    elif stat.S_ISREG(facts.st_mode):
        old, new = open_at(source, name), open_at(target, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            copy_data(old, new, facts.st_size)
        finally:
            os.close(old)
            os.close(new)
    else:
        os.mknod(name, stat.S_IFMT(facts.st_mode) | 0o600, dir_fd=target)
    imitate(source, target, name)


def imitate(source: int, target: int, name: str) -> None:
    """Give a copy the owner, mode, extended attributes and time of its original."""
    facts, now = os.lstat(name, dir_fd=source), os.lstat(name, dir_fd=target)
    if (facts.st_uid, facts.st_gid) != (now.st_uid, now.st_gid):
        try:
            os.chown(name, facts.st_uid, facts.st_gid, dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno != errno.EINVAL:  # the owner is not mapped, because this guest has only one user
                raise
    if not stat.S_ISLNK(facts.st_mode):
        os.chmod(name, stat.S_IMODE(facts.st_mode), dir_fd=target)
    if stat.S_IFMT(facts.st_mode) in XATTR_KINDS:
        copy_attributes(source, target, name)
    os.utime(name, ns=(facts.st_atime_ns, facts.st_mtime_ns), dir_fd=target, follow_symlinks=False)


def copy_attributes(source: int, target: int, name: str) -> None:
    """Copy the extended attributes that belong to a state, and remove all others of them from the copy."""
    old, new = open_at(source, name), open_at(target, name)
    try:
        wanted, there = attributes_of(old), attributes_of(new)
        for key in set(there) - set(wanted):
            os.removexattr(new, key)
        for key, value in wanted.items():
            if there.get(key) != value:
                os.setxattr(new, key, value)
    finally:
        os.close(old)
        os.close(new)


def attributes_of(descriptor: int) -> Dict[str, bytes]:
    """Return the extended attributes that belong to a state."""
    return {key: os.getxattr(descriptor, key) for key in counted(descriptor)}


def copy_data(source: int, target: int, size: int) -> None:
    """Copy a file's content; holes stay holes."""
    start = 0
    while start < size:
        try:
            start = os.lseek(source, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # a hole up to the end
        end = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(source, start, os.SEEK_SET)
        os.lseek(target, start, os.SEEK_SET)
        while start < end:
            start += os.sendfile(target, source, None, min(end - start, 1 << 30))
    os.ftruncate(target, size)
