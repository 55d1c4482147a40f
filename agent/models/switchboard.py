"""Switchboard: gives each call of litellm its own connection, so that another thread can hang up on it.

litellm uses one httpx client for most of its providers, and one transport for the clients that it makes for the rest.
Neither knows which call a request belongs to. So a thread's requests go over the line that the thread holds.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from agent.models.plug import Plug


class Line:
    """A client for one call at a time. It uses the proxies of the environment."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self.plug = Plug()
        self.client = httpx.Client(verify=verify, event_hooks={"request": [self.plug.watch]})


class Switchboard(httpx.BaseTransport):
    """Lends lines to threads and sends their requests. Thread-safe."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._verify = verify
        self._held = threading.local()
        self._idle: list[Line] = []
        self._shared = Line(verify)

    def lend(self) -> Line:
        """A line for one call. It is used again if it is given back."""
        try:
            return self._idle.pop()
        except IndexError:  # all are in use
            return Line(self._verify)

    def give_back(self, line: Line) -> None:
        """Take back the line of a call that has ended without an error."""
        self._idle.append(line)

    @contextmanager
    def over(self, line: Line) -> Iterator[None]:
        """Send this thread's requests over this line while the block runs. An error or a pulled plug closes the
        line."""
        self._held.line = line
        ended_well = False
        try:
            yield
            ended_well = not line.plug.pulled
        finally:
            del self._held.line
            if not ended_well:
                line.plug.forget()
                line.client.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request over the line that this thread holds, or over a shared line if it holds none."""
        line: Line = getattr(self._held, "line", self._shared)
        return line.client.send(request, stream=True)

    def close(self) -> None:
        """Does nothing: clients that litellm discards share the transport with others."""
