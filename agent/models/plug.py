"""Plug: the socket behind a connection of httpx, which another thread than its reader can pull.

Law: a socket is closed only by the thread that reads from it, since the number of a closed one may be another file's by
the next read. Shutting it down wakes that thread, and is all that others do.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

__all__ = ["Plug"]


class Plug:
    """Of a client that has one connection at a time; `watch` is to see each of its requests."""

    def __init__(self) -> None:
        self.pulled = False
        self._socket: socket.socket | None = None

    def watch(self, request: httpx.Request) -> None:
        """An event hook for requests."""
        request.extensions["trace"] = self._traced

    def pull(self) -> None:
        """Hang up, now and whenever something is connected from now on."""
        self.pulled = True
        if self._socket is not None:
            with suppress(OSError):  # it has ended
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # of the connection; TLS would first say goodbye

    def _traced(self, event: str, info: Mapping[str, Any]) -> None:
        """The socket of a new connection, before anything is sent on it. One that was pulled meanwhile is of no use."""
        if event.endswith(("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self.pulled:
                self.pull()
