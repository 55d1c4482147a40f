"""Hosted providers, reached through litellm, which also knows what most of them charge."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from agent.errors import ConfigError
from agent.models import Completion, Message
from agent.models.faults import meaning
from agent.models.retry import Retry
from agent.models.wire import Price, completion, decode

__all__ = ["LiteLLMModel", "load"]


class LiteLLMModel:
    """A model called `PROVIDER/NAME` as litellm spells it. Keys are read from the provider's own variables."""

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
        """A `price` goes before litellm's list; `timeout_s` is how long one answer may take.

        Raises:
            ConfigError: litellm does not know the provider, or its key is not set.
        """
        self._litellm = load()
        self._name = name
        self._base_url = base_url
        self._price = price
        self._timeout_s = timeout_s
        self._sampling = {} if temperature is None else {"temperature": temperature}
        self._retry = retry or Retry()
        self._check()

    @property
    def name(self) -> str:
        """As the user gave it."""
        return self._name

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """See `agent.models.Model`. Sampling parameters that the provider does not know are dropped."""
        body = {"messages": list(messages), **self._sampling, **sampling}
        if tools:
            body["tools"] = list(tools)
        return self._retry.run(lambda: self._ask(body))

    def close(self) -> None:
        """Nothing to do: litellm keeps its connections for the whole process."""

    def _ask(self, body: Mapping[str, Any]) -> Completion:
        import openai

        try:
            response = self._litellm.completion(
                model=self._name,
                base_url=self._base_url,
                timeout=self._timeout_s,
                num_retries=0,
                drop_params=True,
                _skip_mcp_handler=True,  # it would import a package that litellm does not depend on
                **body,
            )
        except openai.APIError as error:
            raise meaning(error, self._name) from error
        cost = response._hidden_params.get("response_cost") or None  # noqa: SLF001  # its documented place
        data = json.dumps(response.model_dump(mode="json")).encode()
        return completion(decode(data, self._name), self._name, self._price, cost)

    def _check(self) -> None:
        """Fail before anything is built, not at the first call."""
        import openai

        try:
            self._litellm.get_llm_provider(self._name, api_base=self._base_url)
        except openai.APIError as error:
            raise ConfigError(
                f"unknown provider in {self._name!r}; for a server of your own write openai/{self._name} and --base-url"
            ) from error
        missing = self._litellm.validate_environment(self._name)["missing_keys"]
        if missing:
            raise ConfigError(f"{self._name}: set {' and '.join(missing)}")


def load() -> Any:
    """Import litellm (seconds), without its look at the network for a price list and its prints."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    return litellm
