"""One command: its own processes, /proc and IPC, no privileges, a deadline."""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import socket
import time
from typing import Callable, Dict, List, NoReturn, Optional, Tuple

from .confine import SET_UP, be_closed, close_proc, filter_program, give_up_privileges, mount_proc
from .disk import Disk
from .door import set_limits
from .files import filled, find_program
from .frames import OVER, Json, Refused
from .kernel import (
    CLONE_NEWIPC,
    CLONE_NEWNS,
    CLONE_NEWPID,
    LIBC,
    checked,
    die_with_parent,
    exit_code,
    unshare,
    write_text,
)
from .template import Template, hand_over


class Action:
    """One command: its own processes, /proc and IPC, no privileges, a deadline."""

    def __init__(
        self,
        request: Json,
        stdin: bytes,
        config: Json,
        user: Tuple[int, int],
        set_up: bool,
        template: Optional[Template] = None,
    ) -> None:
        self.request, self.stdin, self.config, self.template = request, stdin, config, template
        self.capabilities = SET_UP if set_up else ()
        self.user = user
        self.limit = int(request["output_bytes"])
        self.kept: Dict[int, bytearray] = {}
        self.written: Dict[int, int] = {}

    def run(self, uppers: List[int]) -> Tuple[Json, bytes]:
        """Run it to its end; the reply."""
        started = time.monotonic()
        counters = self.counters()
        out, err, status = os.pipe(), os.pipe(), os.pipe()
        init = start_init(lambda: self.become_init(out[1], err[1], status[1]))
        for end in (out[1], err[1], status[1]):
            os.close(end)
        problem, ended_by = self.watch(out[0], err[0], status[0], init, uppers, started + self.request["timeout_s"])
        code = exit_code(os.waitpid(init, 0)[1])
        self.drain(out[0], err[0])
        for end in (out[0], err[0], status[0]):
            os.close(end)
        if problem and self.template:
            raise Refused("template", "%s: %s" % (problem, self.template.said()))
        if problem:
            raise Refused("sandbox", problem)
        limit = ended_by if ended_by == "disk" else self.why(code, counters)
        header = {
            "code": 124 if ended_by == "time" else code,
            "stdout": len(self.kept[out[0]]),
            "stdout_bytes": self.written[out[0]],
            "stderr_bytes": self.written[err[0]],
            "duration_s": time.monotonic() - started,
            "timed_out": ended_by == "time",
            "limit": "" if ended_by == "time" else limit,
        }
        return header, bytes(self.kept[out[0]] + self.kept[err[0]])

    def watch(self, out: int, err: int, status: int, init: int, uppers: List[int], deadline: float) -> Tuple[str, str]:
        """Collect output until the first process is gone; (what failed before the command began, what killed it)."""
        poll = select.poll()
        for descriptor in (out, err, status):
            os.set_blocking(descriptor, False)
            poll.register(descriptor, select.POLLIN)
        poll.register(0, select.POLLIN)
        self.kept = {out: bytearray(), err: bytearray()}
        self.written = {out: 0, err: 0}
        disk = Disk(uppers, self.config["processes_fd"], int(self.request["disk_bytes"]))
        killed = problem = ""
        while True:
            now = time.monotonic()
            if not killed and (now >= deadline or disk.exceeded(now)):
                killed = "time" if now >= deadline else "disk"
                os.kill(init, signal.SIGKILL)
            wait_s = 1.0 if killed else max(0.0, min(deadline - now, disk.wait_s(now)))
            for descriptor, _ in poll.poll(wait_s * 1000):
                if descriptor == 0:  # nothing is asked for while a command runs: the host is gone
                    os._exit(OVER)
                data = os.read(descriptor, 1 << 16)
                if descriptor == status:
                    if not data:
                        return problem, killed
                    problem = data.decode(errors="replace")
                elif data:
                    self.keep(descriptor, data)
                else:
                    poll.unregister(descriptor)

    def keep(self, descriptor: int, data: bytes) -> None:
        """The head of the output, and how much it was in all."""
        room = self.limit - len(self.kept[descriptor])
        self.kept[descriptor] += data[: max(0, room)]
        self.written[descriptor] += len(data)

    def drain(self, *descriptors: int) -> None:
        """What is left in the pipes of processes that are all dead."""
        for descriptor in descriptors:
            try:
                for data in iter(lambda: os.read(descriptor, 1 << 16), b""):  # noqa: B023 - called at once
                    self.keep(descriptor, data)
            except BlockingIOError:
                continue

    def counters(self) -> Dict[str, int]:
        """How often each limit was hit so far."""
        found = {}
        for limit, word in (("memory", b"oom_kill"), ("pids", b"max")):
            descriptor = self.config.get(limit + "_fd")
            for line in os.pread(descriptor, 4096, 0).splitlines() if descriptor is not None else []:
                if line.split()[0] == word:
                    found[limit] = int(line.split()[1])
        return found

    def why(self, code: int, before: Dict[str, int]) -> str:
        """The limit that ended the command, "" when it is not known or none did."""
        if code == 128 + signal.SIGXFSZ:
            return "disk"
        after = self.counters() if code else {}
        return next((limit for limit in after if after[limit] > before.get(limit, 0)), "")

    def become_init(self, out: int, err: int, status: int) -> NoReturn:
        """Be the first process of the action: start the command, reap, and take everything along at the end."""
        os.dup2(status, 3, inheritable=False)
        try:
            die_with_parent()
            unshare(CLONE_NEWNS | CLONE_NEWIPC)
            mount_proc()
            stdin = filled(self.stdin) if self.stdin else os.open(os.devnull, os.O_RDONLY)
            connection = [self.template.connection.fileno()] if self.template else []
            for number, descriptor in enumerate([stdin, out, err]):
                os.dup2(descriptor, number)
            for descriptor in connection:
                os.dup2(descriptor, 4, inheritable=False)
            os.closerange(4 + len(connection), 1 << 16)
            write_text("/proc/self/oom_score_adj", "1000")
            close_proc()
            limits = self._limits()
            set_limits(limits)
            for number in range(3):  # a user may open again what it is given, as /dev/stdout and the like
                os.fchown(number, *self.user) if number or self.stdin else None
            give_up_privileges(filter_program(), self.capabilities, self.user)
            die_with_parent()
            be_closed()
            os.umask(0o022)
            if self.template:
                os._exit(hand_over(socket.socket(fileno=4), self.request["cwd"], limits))
        except (OSError, Refused) as error:
            os.write(3, ("an action cannot be isolated: %s" % error).encode())
            os._exit(1)
        os._exit(reap(self._spawn()))

    def _limits(self) -> List[Tuple[int, int]]:
        limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: int(self.request["disk_bytes"])}
        if self.config.get("memory_fd") is None:
            limits[resource.RLIMIT_AS] = int(self.request["memory_bytes"])
        if self.config.get("pids_fd") is None:
            limits[resource.RLIMIT_NPROC] = int(self.request["pids"])
        return list(limits.items())

    def _spawn(self) -> int:
        """Start the command; its process id, or minus the exit code when it cannot be started."""
        argv, env = self.request["argv"], self.request["env"]
        try:
            os.chdir(self.request["cwd"])
            return os.posix_spawn(
                find_program(argv[0], env.get("PATH", "")),
                argv,
                env,
                setsid=True,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT],
            )
        except OSError as error:
            name = os.fsencode(error.filename or argv[0])
            os.write(2, b"%s: %s\n" % (name, (error.strerror or "").encode()))
            return -127 if error.errno == errno.ENOENT and error.filename != self.request["cwd"] else -126


def start_init(body: Callable[[], NoReturn]) -> int:
    """Fork the first process of a new process id namespace; the caller stays in its own."""
    unshare(CLONE_NEWPID)
    child = os.fork()
    if child == 0:
        body()
    checked(LIBC.setns(OWN_PIDS[0], CLONE_NEWPID), "setns")
    return child


OWN_PIDS: List[int] = []
"""The server's process id namespace, opened while a /proc shows it."""


def reap(command: int) -> int:
    """Wait for the command and for every orphan before it; its exit code."""
    if command < 0:
        return -command
    while True:
        child, status = os.wait()
        if child == command:
            return exit_code(status)
