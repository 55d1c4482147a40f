"""Runs one command in a fork: collects its output and enforces its deadline and disk limit."""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from typing import Dict, List, Tuple

from .disk import Disk
from .frames import OVER, Json, Refused
from .init import Init


class Action:
    """One command, with its own processes, /proc, IPC and network, no privileges, and a deadline."""

    def __init__(self, request: Json, stdin: bytes, config: Json, init: Init) -> None:
        self.request, self.stdin, self.config, self.init = request, stdin, config, init
        self.limit = int(request["output_bytes"])
        self.kept: Dict[int, bytearray] = {init.out: bytearray(), init.err: bytearray()}
        self.written: Dict[int, int] = {init.out: 0, init.err: 0}

    def run(self, uppers: List[int]) -> Tuple[Json, bytes]:
        """Run the command until it ends and return the reply."""
        started = time.monotonic()
        counters = self.counters()
        out, err = self.init.out, self.init.err
        order = {name: self.request.get(name) for name in ("argv", "env", "cwd")}
        self.init.begin({**order, "limits": self._limits()}, self.stdin)
        said, ended_by = self.watch(uppers, started + self.request["timeout_s"])
        code = int(said[1:]) if said.startswith("=") and not ended_by else self.init.ended()
        self.drain(out, err)
        if said and not said.startswith("="):
            raise self.failed(said)
        limit = ended_by if ended_by == "disk" else self.why(code, counters)
        header = {
            "code": 124 if ended_by == "time" else code,
            "stdout": len(self.kept[out]),
            "stdout_bytes": self.written[out],
            "stderr_bytes": self.written[err],
            "duration_s": time.monotonic() - started,
            "timed_out": ended_by == "time",
            "limit": "" if ended_by == "time" else limit,
        }
        return header, bytes(self.kept[out] + self.kept[err])

    def watch(self, uppers: List[int], deadline: float) -> Tuple[str, str]:
        """Collect output until the end; return the first process's status and why it was killed."""
        poll = select.poll()
        for descriptor in (self.init.out, self.init.err, self.init.status):
            os.set_blocking(descriptor, False)
            poll.register(descriptor, select.POLLIN)
        poll.register(0, select.POLLIN)
        disk = Disk(uppers, self.config["processes_fd"], int(self.request["disk_bytes"]))
        said = killed = ""
        while True:
            now = time.monotonic()
            if not killed and (now >= deadline or disk.exceeded(now)):
                killed = "time" if now >= deadline else "disk"
                self.init.kill()
            wait_s = 1.0 if killed else max(0.0, min(deadline - now, disk.wait_s(now)))
            for descriptor, _ in poll.poll(wait_s * 1000):
                if descriptor == 0:  # the host sends no requests while a command runs, so it is gone
                    os._exit(OVER)
                data = os.read(descriptor, 1 << 16)
                if descriptor == self.init.status:
                    said += data.decode(errors="replace")
                    if not data or said.startswith("="):
                        return said, killed
                elif data:
                    self.keep(descriptor, data)
                else:
                    poll.unregister(descriptor)

    def failed(self, problem: str) -> Refused:
        """Return the error that explains why the command did not start."""
        if self.init.template:
            return Refused("template", "%s: %s" % (problem, self.init.template.said()))
        return Refused("sandbox", problem)

    def keep(self, descriptor: int, data: bytes) -> None:
        """Keep the head of the output, and count its total size."""
        room = self.limit - len(self.kept[descriptor])
        self.kept[descriptor] += data[: max(0, room)]
        self.written[descriptor] += len(data)

    def drain(self, *descriptors: int) -> None:
        """Read what is left in the pipes once all processes are dead."""
        for descriptor in descriptors:
            try:
                for data in iter(lambda: os.read(descriptor, 1 << 16), b""):  # noqa: B023 - called at once
                    self.keep(descriptor, data)
            except BlockingIOError:
                continue

    def counters(self) -> Dict[str, int]:
        """Return how often each limit has been hit so far."""
        found = {}
        for limit, word in (("memory", b"oom_kill"), ("pids", b"max")):
            descriptor = self.config.get(limit + "_fd")
            for line in os.pread(descriptor, 4096, 0).splitlines() if descriptor is not None else []:
                if line.split()[0] == word:
                    found[limit] = int(line.split()[1])
        return found

    def why(self, code: int, before: Dict[str, int]) -> str:
        """Return the limit that ended the command; "" if none did or it is unknown."""
        if code == 128 + signal.SIGXFSZ:
            return "disk"
        after = self.counters() if code else {}
        return next((limit for limit in after if after[limit] > before.get(limit, 0)), "")

    def _limits(self) -> List[Tuple[int, int]]:
        limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: int(self.request["disk_bytes"])}
        if self.config.get("memory_fd") is None:
            limits[resource.RLIMIT_AS] = int(self.request["memory_bytes"])
        if self.config.get("pids_fd") is None:
            limits[resource.RLIMIT_NPROC] = int(self.request["pids"])
        return list(limits.items())
