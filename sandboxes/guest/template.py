"""The guest's side of templates: starts one in its own fork, and hands it the namespaces of an action."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import socket
from typing import Callable, Dict, List, Tuple

from .confine import filter_program, give_up_privileges
from .door import HOME, SOCKET, content, send
from .files import filled, find_program
from .frames import Refused
from .kernel import die_with_parent, write_text

KEPT = (8, 18, 21)
"""SETPCAP, SYS_CHROOT and SYS_ADMIN: the capabilities for entering namespaces and then dropping these capabilities."""
SAID_BYTES = 2000
SETNS = {"x86_64": 308, "aarch64": 268}


class Template:
    """A running template, as the server sees it."""

    def __init__(
        self, enter: Callable[[], None], argv: List[str], env: Dict[str, str], cwd: str, program: bytes, pids: int
    ) -> None:
        self.log = os.memfd_create("log")
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            try:
                _prepare(enter, cwd, program, self.log, theirs.detach(), pids)
                os.execve(find_program(argv[0], env.get("PATH", "")), argv, env)
            except (OSError, Refused) as error:
                os.write(self.log, str(error).encode())
            finally:
                os._exit(1)  # the next order fails because the template is gone
        theirs.close()

    def said(self) -> str:
        """Return the end of the template's output."""
        return content(self.log)[-SAID_BYTES:].decode(errors="replace").strip()

    def end(self) -> None:
        """Disconnect from the template, which ends when its last connection is closed."""
        self.connection.close()
        os.close(self.log)


def _prepare(enter: Callable[[], None], cwd: str, program: bytes, log: int, connection: int, pids: int) -> None:
    """Enter the fork with few privileges, the program as stdin, the connection and the server's process ids."""
    os.dup2(log, 1)
    os.dup2(log, 2)
    die_with_parent()
    write_text("/proc/self/oom_score_adj", "1000")  # copies inherit this, and cannot set it in their forks
    enter()
    os.dup2(filled(program), 0)
    connection, pids = (fcntl.fcntl(each, fcntl.F_DUPFD, HOME + 1) for each in (connection, pids))  # out of the way
    os.dup2(connection, SOCKET)
    os.dup2(pids, HOME)
    os.closerange(HOME + 1, 1 << 16)
    os.chdir(cwd)
    give_up_privileges(filter_program((SETNS[platform.machine()],)), KEPT)


def hand_over(connection: socket.socket, cwd: str, limits: List[Tuple[int, int]]) -> int:
    """Let the connected template run the order on stdin in this process's namespaces, and return the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans need no other reaping
    namespaces = [os.open("/proc/self/ns/" + kind, os.O_RDONLY) for kind in ("mnt", "ipc", "net", "pid")]
    listening, done = os.pipe()
    send(connection, {"cwd": cwd, "limits": limits}, [*namespaces, 1, 2, done, 0, filled(filter_program())])
    for descriptor in (*namespaces, 1, 2, done):
        os.close(descriptor)
    code = os.read(listening, 16)
    if not code:
        raise Refused("template", "the template did not take the order")
    return int(code)
