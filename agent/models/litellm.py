"""Hosted providers, reached through litellm, which also knows what most of them charge."""

from __future__ import annotations

import logging
import ssl
import warnings
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from agent.errors import ConfigError
from agent.models import Completion, Message
from agent.models.breakpoints import Lifetime, five_minutes, marked, needs_marks
from agent.models.client import Client
from agent.models.deadlines import read
from agent.models.faults import meaning
from agent.models.http import failures
from agent.models.library import load
from agent.models.pace import Slot
from agent.models.parameters import without
from agent.models.prices import Price, listed
from agent.models.retry import UNKNOWN, Transient
from agent.models.wire import STREAMED, completions, sendable, storable

if TYPE_CHECKING:
    from agent.models.switchboard import Line, Switchboard


log = logging.getLogger(__name__)


class LiteLLMModel:
    """A model called `PROVIDER/NAME` as litellm spells it. Keys are read from the provider's own variables."""

    def __init__(
        self, name: str, *, base_url: str | None = None, cache_ttl: Lifetime = five_minutes, **settings: Any
    ) -> None:
        """`settings` are those of `agent.models.client.Client`; a `price` overrides litellm's list.

        Raises:
            ConfigError: litellm does not know the provider, or its key is not set.
        """
        self._litellm = load()
        self.name = name
        self._base_url = base_url
        provider = self._provider()
        self._client = Client(name, base_url or provider, **settings)
        self._stream = STREAMED if self._client.streams else {}
        with warnings.catch_warnings(action="ignore"):  # importing some provider modules makes pydantic warn
            supported = self._litellm.get_supported_openai_params(name.partition("/")[2], provider) or ()
        self._several = "n" in supported
        self._marks = needs_marks(provider, name)
        self._cache_ttl = cache_ttl
        self._thinking, self._efforts = "thinking" in supported, "reasoning_effort" in supported
        parameters = self._client.parameters
        if (parameters.thinking_tokens or parameters.reasoning_effort) and not (self._thinking or self._efforts):
            log.warning(
                "%s is not known to reason: model.reasoning_effort and model.thinking_tokens are not sent", name
            )

    @property
    def price(self) -> Price | None:
        """See `agent.models.Model`."""
        return self._client.price or listed(self.name, self._base_url)

    def sampling(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """See `agent.models.Model`."""
        return self._client.parameters.with_those_of(parameters)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """See `agent.models.Model`. Sampling parameters that the provider does not know are dropped."""
        conversation = sendable(messages, self.name)
        if self._marks and tools:  # a question without tools stands alone: its prefix is not sent again
            conversation = marked(conversation, self._cache_ttl())
        parameters = self._fields(self.sampling(sampling))
        body = {"messages": conversation, **self._stream, **parameters}
        if tools:
            body["tools"] = list(tools)
        prompt = self._client.prompt(tools, messages, parameters if self._several else None)
        return self._client.draw(partial(self._ask, body), prompt)

    def close(self) -> None:
        """Does nothing: all models share the connections until the process ends."""

    def _ask(self, body: Mapping[str, Any], slot: Slot, count: int) -> list[Completion]:
        """Ask for `count` answers. Several are not streamed, because litellm assembles only one from a stream."""
        import httpx

        deadlines = self._client.deadlines
        if count > 1:
            body = {key: value for key, value in body.items() if key not in self._stream} | {"n": count}
            deadlines = deadlines.unstreamed()
        options = {
            "model": self.name,
            "base_url": self._base_url,
            "timeout": httpx.Timeout(deadlines.silence_s, connect=deadlines.connect_s),
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
            "_skip_mcp_handler": True,  # the handler would import a package that litellm does not depend on
        }
        board = _switchboard()
        line = board.lend()
        call = _Call(self._litellm, {**options, **body}, self.name, board, line)
        pieces = read(call, deadlines, self._client.halt, self.name, lambda piece: slot.begun())
        board.give_back(line)
        response = self._litellm.stream_chunk_builder(pieces, body["messages"]) if body.get("stream") else pieces[0]
        if response is None:
            raise Transient(f"{self.name}: the answer is empty", usage=UNKNOWN)
        cost = response._hidden_params.get("response_cost") or None  # noqa: SLF001  # documented there
        return completions(storable(response.model_dump(mode="json")), self.name, self._client.price, cost)

    def _fields(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters in litellm's form. A Claude model that thinks takes no temperature."""
        tokens, fields = parameters.get("thinking_tokens"), without(parameters, "thinking_tokens")
        if tokens is not None and self._thinking:
            fields = without(fields, "reasoning_effort") | {"thinking": {"type": "enabled", "budget_tokens": tokens}}
        thinks = "thinking" in fields or (self._efforts and fields.get("reasoning_effort", "none") != "none")
        return without(fields, "temperature") if self._marks and thinks else fields

    def _provider(self) -> str:
        """The model's provider. Raises `ConfigError` now, not at the first call."""
        import openai

        try:
            _, provider, _, _ = self._litellm.get_llm_provider(self.name, api_base=self._base_url)
        except openai.APIError as error:
            named, _, model = self.name.partition("/")
            if near := get_close_matches(named, [each.value for each in self._litellm.LlmProviders], n=1):
                raise ConfigError(f"unknown provider in {self.name!r}: did you mean {near[0]}/{model}?") from error
            raise ConfigError(
                f"unknown provider in {self.name!r}; for a server of your own write openai/{self.name} "
                "and -c model.base_url=URL"
            ) from error
        missing = self._litellm.validate_environment(self.name)["missing_keys"]
        if missing:
            raise ConfigError(f"{self.name}: set {' and '.join(missing)}")
        return str(provider)


class _Call:
    """One call of litellm, over a line that another thread can cut. If litellm reaches a provider by a client of its
    own, such as a library other than httpx, the call ends at the next piece or at the client's timeout."""

    def __init__(self, litellm: Any, options: Mapping[str, Any], name: str, board: Switchboard, line: Line) -> None:
        self._litellm = litellm
        self._options = options
        self._name = name
        self._board = board
        self._line = line

    def pieces(self) -> Iterator[Any]:
        """See `agent.models.deadlines.Source`."""
        import openai

        begun = False
        try:
            with self._board.over(self._line):
                response = self._litellm.completion(**self._options)
                for piece in response if self._options.get("stream") else (response,):
                    begun = True
                    yield piece
                    if self._line.plug.pulled:
                        return
                if self._options.get("stream") and not response.received_finish_reason:
                    raise Transient(f"{self._name}: the stream ended before the answer did", usage=UNKNOWN)
        except openai.APIError as error:
            failure = meaning(error, self._name)
            failure.usage = UNKNOWN if begun else failure.usage
            raise failure from error
        except failures("HTTPError") as error:
            raise Transient(f"{self._name}: the answer was cut off: {error}", usage=UNKNOWN) from error

    def cut(self) -> None:
        """See `agent.models.deadlines.Source`."""
        self._line.plug.pull()


@cache
def _switchboard() -> Switchboard:
    """The switchboard of this process. Installs it in litellm on the first call."""
    import httpx
    import litellm
    from litellm.llms.custom_httpx.http_handler import get_ssl_configuration

    from agent.models.switchboard import Switchboard

    verify = get_ssl_configuration()
    board = Switchboard(ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify)
    litellm.client_session = httpx.Client(transport=board, follow_redirects=True)
    litellm.sync_transport = board
    return board
