"""Kernel features that Python lacks: namespaces, and mounts that are created detached and then attached."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from typing import Any, List, Tuple

from .frames import Refused

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
MNT_DETACH = 2
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT = 428, 429, 430, 431, 432
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def checked(result: int, what: str) -> int:
    """Return the result of a system call, or raise OSError if the call failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (what, os.strerror(number)))
    return result


def call(number: int, what: str, *arguments: Any) -> int:
    """Call a system call that has no libc function."""
    return checked(LIBC.syscall(number, *arguments), what)


def unshare(flags: int) -> None:
    """Leave namespaces."""
    checked(LIBC.unshare(flags), "unshare")


def leave_network() -> None:
    """Move to a new network namespace that has only a loopback interface."""
    try:
        unshare(CLONE_NEWNET)
    except OSError as error:
        remedy = "; raise /proc/sys/user/max_net_namespaces" if error.errno == errno.ENOSPC else ""
        raise Refused("unavailable", "cannot make a network namespace (%s)%s" % (error.strerror, remedy)) from error
    with socket.socket() as loopback:
        fcntl.ioctl(loopback, 0x8914, struct.pack("16sH22x", b"lo", 0x41))  # SIOCSIFFLAGS: up


def prctl(option: int, value: Any) -> None:
    """Set an option of this process by the system call of this name."""
    checked(LIBC.prctl(option, value, 0, 0, 0), "prctl %d" % option)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies."""
    prctl(1, signal.SIGKILL)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system by the system call of this name."""
    names = [os.fsencode(text) or None for text in (source, target, kind)]
    checked(LIBC.mount(*names, flags, os.fsencode(options) or None), "mount %s" % target)


def unmount(target: str) -> None:
    """Detach the mount at a path."""
    checked(LIBC.umount2(os.fsencode(target), MNT_DETACH), "unmount %s" % target)


def detached(kind: str, options: List[Tuple[str, str]]) -> int:
    """Return the descriptor of a new file system that is not mounted anywhere. An option without a value is a flag."""
    context = call(FSOPEN, "fsopen " + kind, kind.encode(), 1)
    try:
        for name, value in options:
            text = os.fsencode(value) if value else None
            call(FSCONFIG, "%s %s=%s" % (kind, name, value), context, 1 if value else 0, name.encode(), text, 0)
        call(FSCONFIG, "%s create" % kind, context, 6, None, None, 0)
        return call(FSMOUNT, "fsmount " + kind, context, 1, 0)
    finally:
        os.close(context)


def cloned(path: str) -> int:
    """Return the descriptor of a copy of the mount at a path; the copy is not mounted anywhere."""
    return call(OPEN_TREE, "open_tree " + path, -100, os.fsencode(path), 1 | os.O_CLOEXEC)


def attach(descriptor: int, path: str) -> None:
    """Mount a descriptor from `detached` or `cloned` at a path, and close it."""
    call(MOVE_MOUNT, "move_mount " + path, descriptor, b"", -100, os.fsencode(path), 4)
    os.close(descriptor)


def overlay(lowers: List[str], upper: str, work: str, spare: str) -> int:
    """Return a detached overlay; `lowers` are top-most first. Kernels before 6.5 mount it briefly at `spare`."""
    places = [("upperdir", upper), ("workdir", work)] if upper else []
    flags = [("userxattr", ""), ("volatile", "")] if upper else [("userxattr", "")]
    try:
        return detached("overlay", [("lowerdir+", lower) for lower in lowers] + places + flags)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        reason = error
    escaped = ":".join(lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,") for lower in lowers)
    options = [("lowerdir", escaped), *places, *flags]
    try:
        mount("overlay", spare, "overlay", 0, ",".join("=".join(filter(None, option)) for option in options))
    except OSError:
        base = ", ".join(lowers[-1:])
        raise Refused("unavailable", "cannot mount an overlay of %s (%s)" % (base, reason.strerror)) from reason
    descriptor = cloned(spare)
    unmount(spare)
    return descriptor


def write_text(path: str, text: str) -> None:
    """Write a text in a single write, as files in /proc require."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def exit_code(status: int) -> int:
    """The exit code as a shell reports it: 128 + N if signal N ended the process."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
