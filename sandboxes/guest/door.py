"""Runs in a template: receives orders and copies the template's process into the forks that they come from.

The template runs in a fork of the base state and keeps three capabilities, which let a copy enter the namespaces of an
action. The copy then gives them up before it does anything else, so that it has the privileges of any command. Between
two orders nothing can reach the template: it sees no /proc, and no action sees its processes.
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
"""The descriptor of the template's own process id namespace, to which it returns."""
HANDED_OVER = 9
"""The number of descriptors that come with an order: the namespaces mnt, ipc, net and pid, stdout, stderr, the pipe for
the exit code, the order's text, and the program of the system call filter."""


class CopyOrder(NamedTuple):
    """A request that a copy of the template does some work in a fork."""

    facts: Dict[str, Any]
    """cwd and limits, as in an `exec` request."""
    text: bytes
    """The input of the template's own program."""
    descriptors: Tuple[int, ...]


def send(connection: socket.socket, facts: Dict[str, Any], descriptors: List[int]) -> None:
    """Send a message with open files."""
    rights = array.array("i", descriptors)
    connection.sendmsg([json.dumps(facts).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def receive(connection: socket.socket) -> Tuple[Dict[str, Any], Tuple[int, ...]]:
    """Receive the next message and its open files.

    Raises:
        EOFError: every sender has closed its end.
    """
    rights = array.array("i")
    data, ancillary, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(HANDED_OVER * rights.itemsize))
    if not data:
        raise EOFError
    for _, _, given in ancillary:
        rights.frombytes(given[: len(given) - len(given) % rights.itemsize])
    return json.loads(data), tuple(rights)


def order_of(facts: Dict[str, Any], descriptors: Tuple[int, ...]) -> CopyOrder:
    """Turn a message into an order."""
    return CopyOrder(facts, content(descriptors[7]), descriptors)


def content(file: int) -> bytes:
    """Return the whole content of an open file, regardless of its current position."""
    return os.pread(file, os.fstat(file).st_size, 0)


def close(order: CopyOrder) -> None:
    """Close the descriptors of an order that another process handles."""
    for descriptor in order.descriptors:
        os.close(descriptor)


def reap() -> None:
    """Reap children that have ended, since each would still count as a process. The handler of SIGCHLD is not changed,
    because copies inherit it."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def admit(order: CopyOrder) -> bool:
    """Copy this process into the order's fork. Returns True in the copy, which then is like any command, and False in
    the template, once the copy has ended: a guest runs one command at a time, so no other order can come earlier."""
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
    """Make it possible to wait for children in the block even if the program ignores SIGCHLD. The setting is restored
    when the block ends, in a copy of the process, too."""
    ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _forked_into(pid: int) -> Optional[int]:
    """As `os.fork`, with the child in the process id namespace `pid`; None if that namespace has ended."""
    _enter(pid, CLONE_NEWPID)
    copy: Optional[int] = None
    with suppress(OSError):
        copy = os.fork()
    if copy != 0:
        _enter(HOME, CLONE_NEWPID)
    return copy


def _enter(namespace: int, kind: int) -> None:
    """Enter a namespace. Ends the process if that fails, because it then is neither a template nor a command."""
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
    """Set the limits of this process and of all that it starts; existing limits are never raised."""
    for kind, value in limits:
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
