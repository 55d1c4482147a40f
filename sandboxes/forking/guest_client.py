"""The host's side of a guest: sends requests, receives replies, and raises the guest's failures as errors."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

from sandboxes import (
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
    SnapshotMissing,
    StateDamaged,
    StoreFull,
    Template,
    TemplateLost,
)
from sandboxes.forking.guest_bundle import program
from sandboxes.forking.launcher import Channel

Header = dict[str, Any]
_ERRORS: dict[str, type[SandboxError]] = {
    "unavailable": SandboxUnavailable,
    "missing": SnapshotMissing,
    "lost": SandboxLost,
    "template": TemplateLost,
    "damaged": StateDamaged,
    "sandbox": SandboxError,
}


class Guest:
    """A connection to a running guest. Use it from one thread at a time, and only while it is `alive`.

    Raises:
        SandboxUnavailable: the guest cannot work on this machine.
    """

    def __init__(self, channel: Channel) -> None:
        self.closed = False
        """Whether the guest was closed or found to be gone."""
        self._waiting = True
        self._channel = channel
        self.template: tuple[Template, str] | None = None
        """The template that the guest runs, and the state that it runs over."""
        try:
            self.receive()
        except SandboxLost as error:
            raise SandboxUnavailable(f"the guest does not start: {error}") from error
        except SandboxError:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the guest accepts requests. It does not after a request that was interrupted before its reply."""
        return not self.closed and not self._waiting

    def ask(self, op: str, payload: bytes = b"", /, **fields: object) -> tuple[Header, bytes]:
        """Send a request and return its reply.

        Raises:
            SandboxLost: the guest is gone.
            SandboxError, OSError: the request failed; the guest can still be used.
        """
        if self._waiting:
            raise SandboxLost("the guest's last request was interrupted")
        self.send({"op": op, **fields}, payload)
        return self.receive()

    def ensure_template(self, needed: tuple[Template, str], *, check: bool) -> None:
        """Start a template over a state, unless it already runs. `check` is as for a lease."""
        if self.template != needed:
            template, state = needed
            text = program(template.program)
            self.ask("template", text, id=state, argv=template.argv, env=dict(template.env), check=check)
            self.template = needed

    def send(self, header: Header, payload: bytes | memoryview = b"") -> None:
        """Send a frame without waiting for the reply.

        Raises:
            SandboxLost: the guest is gone.
        """
        if self.closed:
            raise SandboxLost("the guest is gone")
        self._waiting = True
        head = json.dumps(header).encode()
        try:
            self._channel.send(struct.pack("!II", len(head), len(payload)) + head + payload)
        except (OSError, ValueError) as error:  # ValueError: another thread has closed the channel
            raise self._gone() from error

    def close(self) -> str:
        """End the guest with everything in it, and return the end of its stderr."""
        self.closed = True
        return self._channel.close()

    def receive(self) -> tuple[Header, bytes]:
        """Receive the reply to a request that was sent.

        Raises:
            SandboxLost, SandboxError, OSError: as `ask`.
        """
        try:
            head, body = struct.unpack("!II", self._channel.receive(8))
            header: Header = json.loads(self._channel.receive(head))
            payload = self._channel.receive(body)
        except (OSError, EOFError, ValueError) as error:
            raise self._gone() from error
        self._waiting = False
        if "error" in header:
            if header["error"] == "template":
                self.template = None
            raise _error(header)
        return header, payload

    def _gone(self) -> SandboxLost:
        return SandboxLost(f"the guest is gone. {self.close()}".strip())


def _error(header: Header) -> Exception:
    if header["error"] == "os":
        return OSError(header["errno"], header["message"], header["path"] or None)
    if header["error"] == "full":
        remedy = "free some space (`ramify clean` lists what Ramify has left), or use another disk (--out)"
        return StoreFull(f"no room for another state: {header['message']}; {remedy}")
    return _ERRORS[header["error"]](header["message"])


class Upload(io.RawIOBase):
    """A writable file that sends its bytes as frames after a request. `close` sends the empty frame that ends them."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest

    def writable(self) -> bool:
        """Always True."""
        return True

    def write(self, data: Any) -> int:
        """Send one frame."""
        view = memoryview(data).cast("B")
        if view.nbytes:
            self._guest.send({}, view)
        return view.nbytes

    def close(self) -> None:
        """End the upload."""
        if not self.closed and not self._guest.closed:
            self._guest.send({})
        super().close()
