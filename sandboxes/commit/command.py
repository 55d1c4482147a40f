"""Runs one command in a container that is started for it. When its first process ends, the kernel kills all others.

The container's first process is the image's `sh`, which reads the command from stdin. This way a container can be
started any number of times, each time with another command, and keeps its files in between.

The caller watches the deadline. If the caller is stopped or killed, the container ends the command a little later
itself, provided that the image has `sleep`.
"""

from __future__ import annotations

import contextlib
import math
import re
import secrets
import shlex
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandboxes import ExecResult, Limits, SandboxLost, SandboxUnavailable

if TYPE_CHECKING:
    from docker import DockerClient


_END = secrets.token_hex(8)
FIRST_PROCESS = (
    "/bin/sh",
    "-c",
    'script=; while IFS= read -r line; do [ "$line" = "$0" ] && break; script="$script$line\n"; done; eval "$script"',
    _END,
)
"""The entry point of every container of this process."""

_STARTED = b"+"
"""The first byte of stdout; the command's time is measured from here."""
_START_TIMEOUT_S = 120.0
_GRACE_S = 15
"""How long after the deadline the container ends the command itself."""
_DISK_CHECK_S = 2.0
_XFSZ = 25
_KILLED = 128 + 9
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Command:
    """The command to run."""

    argv: Sequence[str]
    timeout_s: float
    cwd: str
    env: Mapping[str, str]
    """Overrides the container's own variables."""
    stdin: bytes = b""

    def script(self) -> bytes:
        """The script for the container's first process."""
        exports = [f"export {name}={shlex.quote(value)}" for name, value in self.env.items() if _NAME.fullmatch(name)]
        odd = [f"{name}={value}" for name, value in self.env.items() if not _NAME.fullmatch(name)]
        argv = [*(["env", *odd] if odd else []), *self.argv]
        source = "" if self.stdin else " </dev/null"
        lines = [
            "printf +; umask 022",
            f"(sleep {math.ceil(self.timeout_s) + _GRACE_S} && kill -9 -1) </dev/null >/dev/null 2>&1 &",
            f"cd {shlex.quote(self.cwd)} || exit 126",
            *exports,
            f"(exec {shlex.join(argv)}){source}",
            "exit $?",
            _END,
        ]
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


class _Output:
    """Stdout and stderr of a running container. The head of each is kept and the rest is counted."""

    def __init__(self, stream: Any, limit: int, now: Callable[[], float]) -> None:
        self._stream = stream
        self._now = now
        self.socket: socket.socket = getattr(stream, "_sock", stream)
        self._limit = limit
        self._raw = bytearray()
        self.kept = {1: bytearray(), 2: bytearray()}
        self.written = {1: 0, 2: 0}
        self.started_at: float | None = None

    def receive(self, until: float) -> bool:
        """Receive the next output, or nothing until the time `until`; False at the end of the streams."""
        self.socket.settimeout(max(0.001, until - self._now()))
        try:
            part = self.socket.recv(1 << 16)
        except TimeoutError:
            return True
        self._raw += part
        while len(self._raw) >= 8 and len(self._raw) >= 8 + (size := struct.unpack(">xxxxL", self._raw[:8])[0]):
            self._keep(self._raw[0], bytes(self._raw[8 : 8 + size]))
            del self._raw[: 8 + size]
        return bool(part)

    def _keep(self, stream: int, data: bytes) -> None:
        if stream == 1 and self.started_at is None:
            self.started_at = self._now()
            data = data.removeprefix(_STARTED)
        self.kept[stream] += data[: max(0, self._limit - len(self.kept[stream]))]
        self.written[stream] += len(data)

    def send(self, data: bytes, *, last: bool) -> None:
        """Send data from a separate thread, because a command may write before it reads."""

        def work() -> None:
            with contextlib.suppress(OSError):
                self.socket.sendall(data)
                if last:
                    self.socket.shutdown(socket.SHUT_WR)

        threading.Thread(target=work, daemon=True).start()

    def check_start(self, code: int) -> None:
        """Raise SandboxLost if the first process, which ended with `code`, did not start the command."""
        if self.started_at is None:
            reason = bytes(self.kept[2]).decode(errors="replace").strip() or f"exit code {code}"
            raise SandboxLost(f"/bin/sh in the container no longer runs commands: {reason}")

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


def run(
    client: DockerClient,
    container: str,
    command: Command,
    limits: Limits,
    size: Callable[[], int],
    now: Callable[[], float] = time.monotonic,
) -> ExecResult:
    """Run a command until it ends. After a time-out, or at the disk limit, the container is killed.

    `size` returns how many bytes the container holds on top of its image; it is called every few seconds.

    Raises:
        SandboxUnavailable: the image has no `sh`.
        SandboxLost: the container's first process did not start the command.
    """
    script = command.script()
    output = _start(client, container, limits.output_bytes, now)
    try:
        output.send(script + command.stdin, last=bool(command.stdin))
        ended_by, duration_s = _watch(output, command.timeout_s, limits.disk_bytes, size, now)
        if ended_by != "disk" and duration_s >= command.timeout_s:
            ended_by = "" if _in_time(client, container) else "time"
        if ended_by:
            _kill(client, container)
        while output.receive(now() + 5):
            continue
        code = client.api.wait(container)["StatusCode"]
    finally:
        output.close()
    output.check_start(code)
    return ExecResult(
        exit_code=124 if ended_by == "time" else code,
        stdout=bytes(output.kept[1]),
        stderr=bytes(output.kept[2]),
        stdout_bytes=output.written[1],
        stderr_bytes=output.written[2],
        duration_s=duration_s,
        timed_out=ended_by == "time",
        limit="disk" if ended_by == "disk" or code == 128 + _XFSZ else _limit(client, container, code),
    )


def _start(client: DockerClient, container: str, limit: int, now: Callable[[], float]) -> _Output:
    from docker.errors import APIError

    streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    output = _Output(client.api.attach_socket(container, params=streams), limit, now)
    try:
        client.api.start(container)
    except APIError as error:
        output.close()
        if "no such file" in str(error.explanation):
            raise SandboxUnavailable(
                "the image has no /bin/sh, which every command needs; use another image"
            ) from error
        raise
    return output


def _watch(
    output: _Output, timeout_s: float, disk_bytes: int, size: Callable[[], int], clock: Callable[[], float]
) -> tuple[str, float]:
    """Wait for the command. Return why it must be killed ("" if it ended by itself), and how long it ran."""
    begun = clock()
    look_at = begun + _DISK_CHECK_S
    while True:
        deadline = begun + _START_TIMEOUT_S if output.started_at is None else output.started_at + timeout_s
        now = clock()
        if now >= deadline:
            return "time", now - (output.started_at or begun)
        if now >= look_at:
            if size() > disk_bytes:
                return "disk", now - (output.started_at or begun)
            look_at = clock() + _DISK_CHECK_S
        if not output.receive(min(deadline, look_at)):
            return "", clock() - (output.started_at or begun)


def _in_time(client: DockerClient, container: str) -> bool:
    """Whether the command ended by itself, but the caller noticed it too late."""
    state = client.api.inspect_container(container)["State"]
    return not state["Running"] and (state["ExitCode"] != _KILLED or state["OOMKilled"])


def _kill(client: DockerClient, container: str) -> None:
    from docker.errors import APIError

    try:
        client.api.kill(container)
    except APIError as error:
        if error.status_code not in (404, 409):  # it has just ended by itself
            raise


def _limit(client: DockerClient, container: str, code: int) -> Any:
    """`memory` if the engine reports that the command ran out of memory, else empty."""
    return "memory" if code and client.api.inspect_container(container)["State"].get("OOMKilled") else ""
