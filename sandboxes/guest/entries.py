"""Describes what is at a path, without ever following a symbolic link."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import ExitStack, contextmanager
from typing import Any, Iterator, List, Optional, Tuple

Entry = List[Any]
"""What is at a path, without its times: [kind, mode, content hash or link target, owner and extended attributes]. Kind
is f, l, d, o(ther) or gone. The last item is "" if the owner is root and there are no attributes."""
XATTR_KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFIFO)
"""The kinds of files that can have extended attributes and can be opened to read them."""


def describe(directory: int, name: str) -> Optional[Entry]:
    """Return the entry for a name in a directory; None if the name does not exist."""
    try:
        facts = os.lstat(name, dir_fd=directory)
    except (FileNotFoundError, NotADirectoryError):
        return None
    content, kind = "", "o"
    if stat.S_ISREG(facts.st_mode):
        kind, content = "f", hash_file(directory, name)
    elif stat.S_ISLNK(facts.st_mode):
        kind, content = "l", os.readlink(name, dir_fd=directory)
    elif stat.S_ISDIR(facts.st_mode):
        kind = "d"
    else:
        content = "%o %d" % (stat.S_IFMT(facts.st_mode), facts.st_rdev)
    return [kind, stat.S_IMODE(facts.st_mode), content, belongings(directory, name, facts)]


def hash_file(directory: int, name: str) -> str:
    """Return the hash of a regular file's content."""
    summary = hashlib.blake2b(digest_size=16)
    with os.fdopen(open_at(directory, name), "rb", 0) as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            summary.update(part)
    return summary.hexdigest()


def belongings(directory: int, name: str, facts: os.stat_result) -> str:
    """Return the owner and a hash of the extended attributes; "" if the owner is root and there are no attributes."""
    owner = "%d:%d" % (facts.st_uid, facts.st_gid) if facts.st_uid or facts.st_gid else ""
    if stat.S_IFMT(facts.st_mode) not in XATTR_KINDS:
        return owner
    descriptor = open_at(directory, name)
    try:
        found = repr([(key, os.getxattr(descriptor, key)) for key in counted(descriptor)])
    finally:
        os.close(descriptor)
    return owner if found == "[]" else owner + " " + hashlib.blake2b(found.encode(), digest_size=16).hexdigest()


def counted(descriptor: int) -> List[str]:
    """List the names of the extended attributes that belong to a state, sorted. The overlay's own attributes and the
    labels of the machine's security policy do not."""
    try:
        names = os.listxattr(descriptor)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise
    return sorted(name for name in names if is_counted(name))


def is_counted(name: str) -> bool:
    """Whether an extended attribute belongs to a state."""
    if name.startswith("user.overlay."):
        return name.startswith("user.overlay.overlay.")  # an overlay stores an action's own such attributes like this
    return name.startswith(("user.", "system.posix_acl_")) or name == "security.capability"


def open_at(directory: int, name: str, flags: int = os.O_RDONLY) -> int:
    """Open a file without following a link and without waiting for the other end of a pipe."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)


def open_directory(directory: int, name: str) -> Optional[int]:
    """Open a directory; None if the name is not a directory or is a link to one."""
    try:
        return open_at(directory, name, os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise


@contextmanager
def parent_of(root: int, path: str) -> Iterator[Optional[Tuple[int, str]]]:
    """Open the directory that contains a relative path, with the path's last name; None if it does not exist."""
    *parents, name = path.split("/")
    with ExitStack() as opened:
        directory: Optional[int] = root
        for parent in parents:
            directory = open_directory(directory, parent) if directory is not None else None
            if directory is None:
                break
            opened.callback(os.close, directory)
        yield None if directory is None else (directory, name)


def exists(directory: int, name: str) -> bool:
    """Whether a name exists in a directory."""
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def is_directory(directory: int, name: str) -> bool:
    """Whether a name in a directory is a directory and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode)
    except FileNotFoundError:
        return False


def is_opaque(directory: int) -> bool:
    """Whether an upper directory hides the lower directories of the same name."""
    try:
        return os.getxattr(directory, "user.overlay.opaque") == b"y"
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return False
        raise


def leaves(root: int, path: str, directories: bool = False) -> Iterator[Tuple[str, Entry]]:
    """Yield every path and entry below an open directory, whose own path is `path`; directories only if asked for."""
    for name in sorted(os.listdir(root)):
        here = path + "/" + name if path else name
        inside = open_directory(root, name)
        entry = describe(root, name)
        assert entry is not None
        if inside is None or directories:
            yield here, entry
        if inside is not None:
            yield from leaves(inside, here, directories)
            os.close(inside)


def at_or_below(root: int, path: str) -> Iterator[Tuple[str, Entry]]:
    """Yield the entry at a path. For a directory, yield it as "", and then all leaves below it."""
    with parent_of(root, path) as place:
        if place is None:
            return
        entry = describe(*place)
        inside = open_directory(*place)
        if inside is not None:
            yield "", ["d"]
            yield from leaves(inside, path)
            os.close(inside)
        elif entry is not None:
            yield path, entry
