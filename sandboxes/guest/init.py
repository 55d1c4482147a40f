"""The first process of an action. It is made knowing nothing of the command, so it can be ready before there is one."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
from contextlib import suppress
from typing import List, NoReturn, Optional, Sequence, Tuple

from .confine import be_closed, close_abstract_sockets, close_proc, filter_program, give_up_privileges, mount_proc
from .door import set_limits
from .files import find_program
from .frames import OVER, Json, write_all
from .kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNS,
    CLONE_NEWPID,
    LIBC,
    checked,
    die_with_parent,
    exit_code,
    leave_network,
    unshare,
    write_text,
)
from .template import Template, hand_over

OWN_PIDS: List[int] = []
"""The server's process id namespace, opened while a /proc shows it."""


class Init:
    """One such process, as its parent knows it: the reading ends of what the command prints, and of `status`. That
    says `=CODE` when the command and all that it started are dead, or what failed before it began, or just ends."""

    def __init__(
        self, user: Tuple[int, int], capabilities: Sequence[int], network: bool, template: Optional[Template] = None
    ) -> None:
        self.user, self.capabilities, self.network, self.template = user, capabilities, network, template
        self.code: Optional[int] = None
        self.stdin = os.memfd_create("stdin")
        (order, self.order), (self.out, out), (self.err, err), (self.status, status) = (os.pipe() for _ in range(4))
        unshare(CLONE_NEWPID)
        try:
            self.process = os.fork()
            if self.process == 0:
                self._be(order, out, err, status)
        finally:  # our own children stay where we are
            checked(LIBC.setns(OWN_PIDS[0], CLONE_NEWPID), "setns")
        for end in (order, out, err, status):
            os.close(end)

    def begin(self, order: Json, stdin: bytes) -> None:
        """Let it run a command: argv, env, cwd and limits; without argv, what `stdin` tells the template."""
        write_all(self.stdin, stdin)
        with suppress(BrokenPipeError):
            write_all(self.order, json.dumps({**order, "stdin": bool(stdin)}).encode() + b"\n")

    def dead(self) -> bool:
        """Whether it died while it was waiting: when memory runs out it is among the first."""
        process, status = os.waitpid(self.process, os.WNOHANG)
        self.code = exit_code(status) if process else None
        return bool(process)

    def kill(self) -> None:
        """End it, and all processes of the command."""
        os.kill(self.process, signal.SIGKILL)

    def ended(self) -> int:
        """Wait for its end, and that of all that it started; its exit code, which is the command's."""
        if self.code is None:
            self.code = exit_code(os.waitpid(self.process, 0)[1])
        return self.code

    def end(self) -> None:
        """End it, if it has not ended, and forget what it printed. Nobody is left in its mounts."""
        if self.code is None:
            self.kill()
            self.ended()
        for end in (self.stdin, self.order, self.out, self.err, self.status):
            os.close(end)

    def _be(self, order: int, out: int, err: int, status: int) -> NoReturn:
        """Be that process, and never again the lease that it was forked from: whatever fails is said, and ends it."""
        code = 1
        try:
            code = self._run(order, out, err, status)
            kill_all()
            os.write(status, b"=%d" % code)
        except Exception as error:
            os.write(status, ("an action cannot be isolated: %s" % error).encode(errors="replace"))
        finally:
            os._exit(code)

    def _run(self, order: int, out: int, err: int, status: int) -> int:
        """Start the command, or have a copy of the template be it, and reap; its exit code."""
        connection = [self.template.connection.fileno()] if self.template else []
        for number, descriptor in enumerate([os.open(os.devnull, os.O_RDONLY), out, err]):
            os.dup2(descriptor, number)
        close_all_but(self.stdin, order, status, *connection)
        self._isolate()
        request = read_order(order)
        set_limits(request["limits"])
        if request["stdin"]:
            os.lseek(self.stdin, 0, os.SEEK_SET)
            os.dup2(self.stdin, 0)
        if connection:
            return hand_over(socket.socket(fileno=connection[0]), request["cwd"], request["limits"])
        return reap(spawn(request))

    def _isolate(self) -> None:
        """Own processes, /proc, IPC, network and session, and no privileges but those that the command is to have."""
        die_with_parent()
        os.setsid()
        unshare(CLONE_NEWNS | CLONE_NEWIPC)
        if not self.network:
            leave_network()
        mount_proc()
        write_text("/proc/self/oom_score_adj", "1000")
        close_proc()
        for descriptor in (self.stdin, 1, 2):  # a user may open again what it is given, as /dev/stdout and the like
            os.fchown(descriptor, *self.user)
        if self.capabilities:  # a set-up, in the network of others
            close_abstract_sockets()
        give_up_privileges(filter_program(), self.capabilities, self.user)
        die_with_parent()
        be_closed()
        os.umask(0o022)


def close_all_but(*kept: int) -> None:
    """Of the descriptors above the standard ones."""
    order = sorted(kept)
    for below, above in zip([2, *order], [*order, 1 << 16]):  # noqa: B905 - Python 3.8
        os.closerange(below + 1, above)


def read_order(descriptor: int) -> Json:
    """What `begin` wrote. Ends the process when nobody is left who could."""
    with os.fdopen(descriptor, "rb") as file:
        text = file.readline()
    if not text:
        os._exit(OVER)
    order: Json = json.loads(text)
    return order


def spawn(order: Json) -> int:
    """Start the command; its process id, or minus the exit code when it cannot be started."""
    argv, env = order["argv"], order["env"]
    try:
        os.chdir(order["cwd"])
        return os.posix_spawn(
            find_program(argv[0], env.get("PATH", "")),
            argv,
            env,
            setpgroup=0,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT],
        )
    except OSError as error:
        name = os.fsencode(error.filename or argv[0])
        os.write(2, b"%s: %s\n" % (name, (error.strerror or "").encode()))
        return -127 if error.errno == errno.ENOENT and error.filename != order["cwd"] else -126


def reap(command: int) -> int:
    """Wait for the command and for every orphan before it; its exit code."""
    if command < 0:
        return -command
    while True:
        child, status = os.wait()
        if child == command:
            return exit_code(status)


def kill_all() -> None:
    """End every other process of this namespace: all are this one's children once their parents are dead."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()
