"""A guest's channel in Docker: the container's stdin, stdout and stderr over the engine's socket."""

from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from docker import DockerClient


_STDERR = 2
_STDERR_BYTES = 4000
_READ_BYTES = 1 << 16
_END_TIMEOUT_S = 5


class _Socket(Protocol):
    """The methods that plain, TLS and SSH connections to the engine share."""

    def sendall(self, data: bytes, /) -> object: ...
    def recv(self, size: int, /) -> bytes: ...
    def settimeout(self, timeout_s: float | None, /) -> None: ...
    def close(self) -> None: ...


class Attached:
    """A `launcher.Channel` to the main process of a container, which ends when its stdin is closed."""

    def __init__(self, client: DockerClient, container: str, stream: Any) -> None:
        self._client = client
        self._container = container
        self._stream = stream  # a reader of the socket, which stays open until both are closed
        self._socket: _Socket = getattr(stream, "_sock", stream)
        self._socket.settimeout(None)
        self._raw = bytearray()
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._open = True

    def send(self, data: bytes) -> None:
        """As `Channel.send`."""
        self._socket.sendall(data)

    def receive(self, size: int) -> bytes:
        """As `Channel.receive`."""
        while len(self._stdout) < size:
            self._read_packet()
        data = bytes(self._stdout[:size])
        del self._stdout[:size]
        return data

    def close(self) -> str:
        """As `Channel.close`."""
        if self._open:
            self._open = False
            self._end()
            self._stream.close()
            self._socket.close()
        return self._stderr.decode(errors="replace").strip()

    def _end(self) -> None:
        """Remove the container and read its remaining output."""
        from requests import RequestException

        # The container ends by itself once its stdin is closed and may be gone already; this is only faster.
        with contextlib.suppress(RequestException):
            self._client.api.remove_container(self._container, v=True, force=True)
        with contextlib.suppress(RequestException):
            self._client.api.wait(self._container, timeout=_END_TIMEOUT_S, condition="removed")
        self._socket.settimeout(_END_TIMEOUT_S)
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._read_packet()

    def _read_packet(self) -> None:
        """Read one packet of the engine's stream: a header with stream number and size, then the output."""
        stream, size = struct.unpack(">BxxxL", self._take(8))
        data = self._take(size)
        if stream == _STDERR:
            self._stderr = (self._stderr + data)[-_STDERR_BYTES:]
        else:
            self._stdout += data

    def _take(self, size: int) -> bytes:
        while len(self._raw) < size:
            part = self._socket.recv(_READ_BYTES)
            if not part:
                raise EOFError("the guest's container is gone")
            self._raw += part
        data = bytes(self._raw[:size])
        del self._raw[:size]
        return data


def attach(client: DockerClient, container: str) -> Attached:
    """Attach to a container that was created with an open stdin, then start it, so that no output is missed."""
    from docker.errors import APIError

    streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    connection = Attached(client, container, client.api.attach_socket(container, params=streams))
    try:
        client.api.start(container)
    except APIError:
        connection.close()
        raise
    return connection
