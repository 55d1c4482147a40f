"""Runs in a template: a process that has done what many commands begin with, and of which each gets a copy.

The template stands in a fork of the base state and keeps three capabilities, which let a copy go into the namespaces
of an action; there the copy gives them up, as any command does, before it goes on. Between two orders nothing can talk
to the template: it sees no /proc, and no action sees its processes.
"""

from __future__ import annotations

import array
import json
import os
import resource
import signal
import socket
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .confine import give_up_privileges
from .kernel import CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID, LIBC, die_with_parent, exit_code

SOCKET = 3
"""The descriptor of a template's socket."""
HOME = 4
"""The descriptor of its own process id namespace, to which it comes back."""
HANDED_OVER = 9
"""Descriptors that come with an order: namespaces mnt, ipc, net and pid, stdout, stderr, where the exit code goes, the
order, the program of the system call filter."""


class CopyOrder(NamedTuple):
    """What the template is asked to do in some fork."""

    facts: Dict[str, Any]
    """cwd and limits, as in a request to execute something."""
    text: bytes
    """For the template's own program."""
    descriptors: Tuple[int, ...]


def send(connection: socket.socket, facts: Dict[str, Any], descriptors: List[int]) -> None:
    """A message with open files."""
    rights = array.array("i", descriptors)
    connection.sendmsg([json.dumps(facts).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def receive(connection: socket.socket) -> Tuple[Dict[str, Any], Tuple[int, ...]]:
    """The next message and its open files.

    Raises:
        EOFError: nobody can send any more.
    """
    rights = array.array("i")
    data, ancillary, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(HANDED_OVER * rights.itemsize))
    if not data:
        raise EOFError
    for _, _, given in ancillary:
        rights.frombytes(given[: len(given) - len(given) % rights.itemsize])
    return json.loads(data), tuple(rights)


def order_of(facts: Dict[str, Any], descriptors: Tuple[int, ...]) -> CopyOrder:
    """A message as an order."""
    return CopyOrder(facts, content(descriptors[7]), descriptors)


def content(file: int) -> bytes:
    """All of an open file, wherever it is read at."""
    return os.pread(file, os.fstat(file).st_size, 0)


def close(order: CopyOrder) -> None:
    """Forget an order that somebody else has taken."""
    for descriptor in order.descriptors:
        os.close(descriptor)


def reap() -> None:
    """Let go of children that ended: each would count as a process until then. Their signal is left alone, for what
    they inherit of it."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def admit(order: CopyOrder) -> bool:
    """Copy this process into the order's fork. True in the copy, which is like any command; False in the template, once
    that has ended: a guest has one command at a time, so there are no other orders until then."""
    reap()
    mnt, ipc, net, pid, out, err, done, _, program = order.descriptors
    with _children_noticed():
        copy = _forked_into(pid)
        if copy != 0:
            done = os.dup(done)
            close(order)
            if copy is not None:
                _tell(done, exit_code(os.waitpid(copy, 0)[1]))
            os.close(done)
            return False
    die_with_parent()
    _enter(ipc, CLONE_NEWIPC)
    _enter(net, CLONE_NEWNET)
    _enter(mnt, CLONE_NEWNS)
    _become_command(order, out, err, content(program))
    return True


@contextmanager
def _children_noticed() -> Iterator[None]:
    """For the block, children that end are waited for though what this process has run ignores their signal. Where the
    block is left it is as it was, in a copy too."""
    ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _forked_into(pid: int) -> Optional[int]:
    """As `os.fork`, the child in that process id namespace; None when nobody lives there any more."""
    _enter(pid, CLONE_NEWPID)
    copy: Optional[int] = None
    with suppress(OSError):
        copy = os.fork()
    if copy != 0:
        _enter(HOME, CLONE_NEWPID)
    return copy


def _enter(namespace: int, kind: int) -> None:
    """Go there. Who cannot is neither a template nor a command, and ends."""
    if LIBC.setns(namespace, kind):
        os._exit(1)


def _tell(done: int, code: int) -> None:
    with suppress(BrokenPipeError):
        os.write(done, b"%d" % code)


def _become_command(order: CopyOrder, out: int, err: int, program: bytes) -> None:
    """Become an ordinary process of the action."""
    os.close(HOME)
    os.setsid()
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    close(order)
    set_limits(order.facts["limits"])
    give_up_privileges(program)
    os.umask(0o022)
    os.chdir(order.facts["cwd"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGPIPE else signal.SIG_DFL)


def set_limits(limits: List[Tuple[int, int]]) -> None:
    """Of this process and what it starts; never above those that it has."""
    for kind, value in limits:
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
