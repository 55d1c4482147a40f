"""The first process of an action. It is started without knowing the command, so it can be ready in advance."""

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
"""The server's process id namespace, opened while a /proc still shows it."""


class Init:
    """The first process of an action, as its parent sees it: the reading ends of the command's output and of `status`.

    `status` delivers `=CODE` once the command and all that it started are dead, or a message if something failed before
    the command started; it is just closed if the process was killed.
    """

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
        finally:  # later children stay in this process's own namespace
            checked(LIBC.setns(OWN_PIDS[0], CLONE_NEWPID), "setns")
        for end in (order, out, err, status):
            os.close(end)

    def begin(self, order: Json, stdin: bytes) -> None:
        """Start a command: argv, env, cwd and limits. Without argv, `stdin` is an order for the template."""
        write_all(self.stdin, stdin)
        with suppress(BrokenPipeError):
            write_all(self.order, json.dumps({**order, "stdin": bool(stdin)}).encode() + b"\n")

    def dead(self) -> bool:
        """Whether the process died while it was waiting; it is among the first to be killed when memory runs out."""
        process, status = os.waitpid(self.process, os.WNOHANG)
        self.code = exit_code(status) if process else None
        return bool(process)

    def kill(self) -> None:
        """Kill the process and all processes of the command."""
        os.kill(self.process, signal.SIGKILL)

    def ended(self) -> int:
        """Wait until the process and all that it started have ended; return the command's exit code."""
        if self.code is None:
            self.code = exit_code(os.waitpid(self.process, 0)[1])
        return self.code

    def end(self) -> None:
        """Kill the process if it still runs, and drop its output. Afterwards no process uses its mounts."""
        if self.code is None:
            self.kill()
            self.ended()
        for end in (self.stdin, self.order, self.out, self.err, self.status):
            os.close(end)

    def _be(self, order: int, out: int, err: int, status: int) -> NoReturn:
        """Run as the new process. Never returns to the lease's code: a failure is written to `status`."""
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
        """Run the command, or have a copy of the template run as the command; return its exit code."""
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
        """Enter a separate /proc, IPC, network and session, and give up privileges that the command must not have."""
        die_with_parent()
        os.setsid()
        unshare(CLONE_NEWNS | CLONE_NEWIPC)
        if not self.network:
            leave_network()
        mount_proc()
        write_text("/proc/self/oom_score_adj", "1000")
        close_proc()
        for descriptor in (self.stdin, 1, 2):  # the user may open them again, as /dev/stdout and the like
            os.fchown(descriptor, *self.user)
        if self.capabilities:  # a set-up command, in a network that it shares with others
            close_abstract_sockets()
        give_up_privileges(filter_program(), self.capabilities, self.user)
        die_with_parent()
        be_closed()
        os.umask(0o022)


def close_all_but(*kept: int) -> None:
    """Close all descriptors above the standard ones, except `kept`."""
    order = sorted(kept)
    for below, above in zip([2, *order], [*order, 1 << 16]):  # noqa: B905 - Python 3.8
        os.closerange(below + 1, above)


def read_order(descriptor: int) -> Json:
    """Read what `begin` wrote. Ends the process if the other end was closed without an order."""
    with os.fdopen(descriptor, "rb") as file:
        text = file.readline()
    if not text:
        os._exit(OVER)
    order: Json = json.loads(text)
    return order


def spawn(order: Json) -> int:
    """Start the command; return its process id, or minus the exit code if it cannot be started."""
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
    """Wait for the command and reap orphans meanwhile; return the command's exit code."""
    if command < 0:
        return -command
    while True:
        child, status = os.wait()
        if child == command:
            return exit_code(status)


def kill_all() -> None:
    """Kill every other process in this namespace; each becomes a child of this process once its parent is dead."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()
