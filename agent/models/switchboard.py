"""Switchboard: a connection of its own for each call of litellm, so that another thread can hang up on it.

litellm takes one client of httpx for most of its providers, and one transport for the clients that it makes for the
others; it says nothing to them of the call. So what a thread sends goes over the line that it holds.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from agent.models.plug import Plug

__all__ = ["Line", "Switchboard"]


class Line:
    """A client, for one call at a time. It goes by the proxies of the environment."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self.plug = Plug()
        self.client = httpx.Client(verify=verify, event_hooks={"request": [self.plug.watch]})


class Switchboard(httpx.BaseTransport):
    """Gives lines to threads, and sends what they ask. Thread-safe."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self._verify = verify
        self._held = threading.local()
        self._idle: list[Line] = []
        self._shared = Line(verify)

    @contextmanager
    def line(self) -> Iterator[Line]:
        """A line for what this thread sends within the block. It is used again if its call came to its end."""
        try:
            line = self._idle.pop()
        except IndexError:  # all are in use
            line = Line(self._verify)
        self._held.line = line
        try:
            yield line
        except BaseException:
            line.client.close()
            raise
        finally:
            del self._held.line
        if line.plug.pulled:
            line.client.close()
        else:
            self._idle.append(line)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it over the line that this thread holds; one that holds none shares one with its like."""
        line: Line = getattr(self._held, "line", self._shared)
        return line.client.send(request, stream=True)

    def close(self) -> None:
        """Nothing to do: clients that litellm gives up share it with others."""
