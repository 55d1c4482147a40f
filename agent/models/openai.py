"""Models on any server with the OpenAI chat completions interface, reached with the `openai` client.

Other interfaces of such servers are reached through `OpenAIModel.answer`.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from agent.errors import ConfigError
from agent.models import Completion, Message
from agent.models.client import Client
from agent.models.deadlines import Deadlines, read
from agent.models.faults import meaning
from agent.models.http import failures
from agent.models.pace import Slot
from agent.models.parameters import without
from agent.models.plug import Plug
from agent.models.retry import UNKNOWN, Transient
from agent.models.stream import assemble
from agent.models.warming import NO_PROMPT, Prompt
from agent.models.wire import STREAMED, completions, decode, sendable

if TYPE_CHECKING:
    import httpx


log = logging.getLogger(__name__)

ANSWER_BYTES = 64 << 20
"""A longer answer is rejected."""
GRACE_S = 0.5
"""The connection's timeout is this much longer than the deadlines, whose messages are more precise."""


@dataclass(frozen=True, slots=True)
class Interface:
    """How answers arrive."""

    assemble: Callable[[Iterable[Any]], Any]
    """Builds an answer from the events of a stream, as `agent.models.stream.assemble`."""
    has_begun: Callable[[bytes], bool]
    """Whether a piece of a response shows that the model has read the question."""


CHAT = Interface(assemble, lambda piece: b"data:" in piece or not piece.lstrip().startswith(b":"))
"""The chat completions interface. While only comments arrive, the answer has not begun."""


class OpenAIModel:
    """A model behind a base URL, called `openai/NAME`. The key is read from OPENAI_API_KEY and stored nowhere."""

    def __init__(self, name: str, *, base_url: str | None = None, **settings: Any) -> None:
        """`base_url` defaults to OPENAI_BASE_URL, and needs no key if the server asks for none; `settings` are those of
        `agent.models.client.Client`. `thinking_tokens` does not exist in this interface and is not sent.

        Raises:
            ConfigError: OpenAI's own server is meant and there is no key, or `base_url` is not a URL.
        """
        base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        if not base_url and not os.environ.get("OPENAI_API_KEY"):
            raise ConfigError(f"{name}: set OPENAI_API_KEY; for a server of your own, set model.base_url")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base URL {base_url!r}: it has to begin with http:// or https://")
        self.name = name
        self.client = Client(name, base_url or "openai", **settings)
        self.price = self.client.price
        if self.client.parameters.thinking_tokens is not None:
            log.warning("%s: model.thinking_tokens is not sent: set model.reasoning_effort or model.body", name)
        self._base_url = base_url
        self._lines = [_Line(name, base_url, self.client.deadlines)]

    def sampling(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """See `agent.models.Model`."""
        return self.client.parameters.with_those_of(parameters)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """See `agent.models.Model`."""
        body: dict[str, Any] = {"model": self.name.removeprefix("openai/"), "messages": sendable(messages, self.name)}
        if tools:
            body["tools"] = list(tools)
        parameters = without(self.sampling(sampling), "thinking_tokens")
        body |= (STREAMED if self.client.streams else {}) | parameters
        return self.client.draw(partial(self._choices, body), self.client.prompt(tools, messages, parameters))

    def answer(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], Completion],
        prompt: Prompt = NO_PROMPT,
        interface: Interface = CHAT,
    ) -> Completion:
        """The result of `read` for the server's answer to a request at `path`. `read` raises `Transient` if the request
        is worth a retry.

        Raises:
            agent.errors.RamifyError: as `agent.models.Model.complete`.
        """
        return self.client.run(lambda slot: read(self._ask(path, body, slot, interface)), prompt)

    def close(self) -> None:
        """See `agent.models.Model`."""
        while self._lines:
            self._lines.pop().close()

    def _choices(self, body: Mapping[str, Any], slot: Slot, count: int) -> list[Completion]:
        request = {**body, "n": count} if count > 1 else body
        return completions(self._ask("/chat/completions", request, slot), self.name, self.price)

    def _ask(self, path: str, body: Mapping[str, Any], slot: Slot, interface: Interface = CHAT) -> Any:
        try:
            line = self._lines.pop()
        except IndexError:  # all are in use
            line = _Line(self.name, self._base_url, self.client.deadlines)
        line.path, line.body = path, body

        def on_piece(piece: bytes) -> None:
            if interface.has_begun(piece):
                slot.begun()

        try:
            pieces: list[bytes] = read(line, self.client.deadlines, self.client.halt, self.name, on_piece)
        finally:
            if not line.was_cut:
                self._lines.append(line)
        return decode(b"".join(pieces), self.name, interface.assemble)


@cache
def _certificates() -> ssl.SSLContext:
    """The TLS context, built once because that takes longer than a connection."""
    import httpx

    return httpx.create_ssl_context()


class _Line:
    """One connection to the server, for one question at a time. Another thread can cut it."""

    def __init__(self, name: str, base_url: str | None, deadlines: Deadlines) -> None:
        import openai

        self.path = ""
        self.body: Mapping[str, Any] = {}
        self._name = name
        self._plug = Plug()
        timeout = openai.Timeout(deadlines.silence_s + GRACE_S, connect=deadlines.connect_s)
        web = openai.DefaultHttpxClient(verify=_certificates(), event_hooks={"request": [self._plug.watch]})
        key = os.environ.get("OPENAI_API_KEY") or "none"
        self._client = openai.OpenAI(api_key=key, base_url=base_url, max_retries=0, timeout=timeout, http_client=web)

    def pieces(self) -> Iterator[bytes]:
        """See `agent.models.deadlines.Source`."""
        import openai

        length = 0
        try:
            for piece in self._send().iter_bytes():
                yield piece
                length += len(piece)
                if self.was_cut or length > ANSWER_BYTES:
                    raise Transient(f"{self._name}: the answer is longer than {ANSWER_BYTES} bytes", usage=UNKNOWN)
        except openai.APIError as error:
            raise meaning(error, self._name) from error
        except failures("HTTPError") as error:
            raise Transient(f"{self._name}: the answer was cut off: {error}", usage=UNKNOWN) from error
        finally:
            if self.was_cut:
                self.close()

    def cut(self) -> None:
        """See `agent.models.deadlines.Source`."""
        self._plug.pull()

    def close(self) -> None:
        """Close the connection. Nothing reads from it."""
        self._plug.forget()
        self._client.close()

    @property
    def was_cut(self) -> bool:
        """Whether the line is unusable."""
        return self._plug.pulled

    def _send(self) -> httpx.Response:
        """The response, once its headers have come."""
        import httpx
        import openai

        answer = self._client.post(
            self.path, body=self.body, cast_to=httpx.Response, stream=True, stream_cls=openai.Stream[Any]
        )
        return cast("httpx.Response", answer)  # the client's types cover only streams of events
