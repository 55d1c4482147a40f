"""Moves the guest into its own namespaces."""

from __future__ import annotations

import os
import socket

from .frames import Refused
from .kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MS_PRIVATE,
    MS_REC,
    die_with_parent,
    leave_network,
    mount,
    unshare,
    write_text,
)


def enter(network: bool) -> None:
    """Create new namespaces and return in their first process. The calling process stays outside and waits for it."""
    enter_user_namespace(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)
    server = os.fork()
    if server:
        os.close(0)
        os.close(1)
        os.waitpid(server, 0)
        os._exit(0)
    die_with_parent()
    mount("", "/", "", MS_REC | MS_PRIVATE)
    socket.sethostname("sandbox")
    if not network:
        leave_network()


def enter_user_namespace(flags: int) -> None:
    """Create a user namespace. If allowed, root maps every user to itself; else only this user is mapped, to root."""
    user, group = os.geteuid(), os.getegid()
    ready = os.pipe()
    me = os.getpid()
    mapper = 0 if user else os.fork()
    if user == 0 and mapper == 0:
        os.close(ready[1])
        os.read(ready[0], 1)
        os._exit(0 if map_all(me) else 1)
    try:
        unshare(flags)
    except OSError as error:
        raise Refused("unavailable", "user namespaces are refused here (%s)" % error.strerror) from error
    os.write(ready[1], b"x")
    for end in ready:
        os.close(end)
    if user or os.waitpid(mapper, 0)[1]:
        write_text("/proc/self/setgroups", "deny")
        write_text("/proc/self/uid_map", "0 %d 1" % user)
        write_text("/proc/self/gid_map", "0 %d 1" % group)


def map_all(process: int) -> bool:
    """Map every user and group of this namespace to itself in the new user namespace of a process; False on failure."""
    try:
        for kind in ("uid_map", "gid_map"):
            with open("/proc/self/" + kind) as own:
                first = own.readline().split()
            write_text("/proc/%d/%s" % (process, kind), "0 0 %d" % min(int(first[2]), 65536))
    except OSError:
        return False
    return True
