"""Any server that speaks the OpenAI chat completions interface, reached with the `openai` client."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from agent.errors import ConfigError
from agent.models import Completion, Message
from agent.models.faults import meaning
from agent.models.retry import Retry
from agent.models.wire import Price, completion, decode

__all__ = ["OpenAIModel"]

CONNECT_S = 10.0


class OpenAIModel:
    """A model behind a base URL, called `openai/NAME`. The key is read from OPENAI_API_KEY and kept nowhere else."""

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        price: Price | None = None,
        temperature: float | None = None,
        timeout_s: float = 600.0,
        retry: Retry | None = None,
    ) -> None:
        """`base_url` defaults to OPENAI_BASE_URL; `timeout_s` is how long one answer may take.

        Raises:
            ConfigError: there is no key, or `base_url` is not a URL.
        """
        import openai

        if not os.environ.get("OPENAI_API_KEY"):
            raise ConfigError(f"{name}: set OPENAI_API_KEY (to any value for a server that asks for no key)")
        base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base URL {base_url!r}: it has to begin with http:// or https://")
        self._name = name
        self._price = price
        self._sampling = {} if temperature is None else {"temperature": temperature}
        self._retry = retry or Retry()
        timeout = openai.Timeout(timeout_s, connect=CONNECT_S)
        self._client = openai.OpenAI(base_url=base_url, max_retries=0, timeout=timeout)

    @property
    def name(self) -> str:
        """As the user gave it."""
        return self._name

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """See `agent.models.Model`."""
        body = {"model": self._name.removeprefix("openai/"), "messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
        body |= self._sampling | sampling
        return self._retry.run(lambda: self._ask(body))

    def close(self) -> None:
        """See `agent.models.Model`."""
        self._client.close()

    def _ask(self, body: Mapping[str, Any]) -> Completion:
        import httpx
        import openai

        try:
            response = self._client.post("/chat/completions", body=body, cast_to=httpx.Response)
        except openai.APIError as error:
            raise meaning(error, self._name) from error
        return completion(decode(response.content, self._name), self._name, self._price)
