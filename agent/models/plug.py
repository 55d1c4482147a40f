"""Plug: the socket of an httpx connection, which any thread can pull to wake the reader.

Invariant: only the thread that reads from a socket closes it, because the file descriptor of a closed socket may belong
to another file by the next read. Other threads only shut it down, which wakes the reader.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx


class Plug:
    """The plug of a client with one connection at a time. `watch` must be an event hook for all its requests."""

    def __init__(self) -> None:
        self.pulled = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def watch(self, request: httpx.Request) -> None:
        """The event hook for requests."""
        request.extensions["trace"] = self._traced

    def pull(self) -> None:
        """Shut down the current connection and every later one."""
        self.pulled = True
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):  # the connection has ended
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # not the TLS shutdown, which sends first

    def forget(self) -> None:
        """Never shut down the current connection again, because it is about to be closed."""
        with self._lock:
            self._socket = None

    def _traced(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the socket of a new connection before anything is sent, and shut it down if the plug is pulled."""
        if event.endswith(("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self.pulled:
                self.pull()
