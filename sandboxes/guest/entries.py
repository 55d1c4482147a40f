"""What is at a path, looked at without ever following a symbolic link."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import ExitStack, contextmanager
from typing import Any, Iterator, List, Optional, Tuple

Entry = List[Any]
"""What is at a path, but for its times: [kind, mode, content hash or link target, owner and extended attributes]; kind
is f, l, d, o(ther) or gone. The last is "" for what belongs to root and has no attributes."""
XATTR_KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFIFO)
"""What can have extended attributes and be opened to read them."""


def describe(directory: int, name: str) -> Optional[Entry]:
    """What is there, None when nothing is; never through a symbolic link."""
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
    """Of a regular file's bytes."""
    summary = hashlib.blake2b(digest_size=16)
    with os.fdopen(open_at(directory, name), "rb", 0) as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            summary.update(part)
    return summary.hexdigest()


def belongings(directory: int, name: str, facts: os.stat_result) -> str:
    """The owner and the extended attributes, "" when they are the usual ones."""
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
    """The names of those extended attributes that belong to a state, sorted: not the overlay's own, nor the labels that
    the machine's security policy gives."""
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
        return name.startswith("user.overlay.overlay.")  # how an overlay keeps an action's own of that name
    return name.startswith(("user.", "system.posix_acl_")) or name == "security.capability"


def open_at(directory: int, name: str, flags: int = os.O_RDONLY) -> int:
    """Open without following a link or waiting for a pipe's other end."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)


def open_directory(directory: int, name: str) -> Optional[int]:
    """None if it is not a directory, or is a link to one."""
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
    """The directory that holds a relative path and the path's last name; None when there is no such directory."""
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
    """Whether anything is there."""
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def is_directory(directory: int, name: str) -> bool:
    """Whether a real directory is there."""
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode)
    except FileNotFoundError:
        return False


def is_opaque(directory: int) -> bool:
    """Whether an upper directory hides the lower ones of its name."""
    try:
        return os.getxattr(directory, "user.overlay.opaque") == b"y"
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return False
        raise


def leaves(root: int, path: str, directories: bool = False) -> Iterator[Tuple[str, Entry]]:
    """Everything at and below a path that is no directory, or that too; caches are left out of whole trees."""
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
    """The leaf at a path, or the leaves below it and then "" for the directory itself."""
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
