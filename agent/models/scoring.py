"""Scoring: a model that is asked how likely it finds given texts, and writes nothing itself.

Asked with `texts`, it answers with the log-probability of each of them after the one message, as `Completion.logprobs`.
The server has to speak the older OpenAI interface with `echo` and `logprobs`, as vLLM does (`/v1/completions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agent.budget import Usage
from agent.errors import ModelError
from agent.models import Completion, Message
from agent.models.openai import OpenAIModel
from agent.models.prices import Price
from agent.models.wire import usage

__all__ = ["ScoringModel"]

AT_ONCE = 64
"""Texts of one request."""


class ScoringModel:
    """A model behind a base URL. Thread-safe, as the one that it speaks through."""

    def __init__(self, server: OpenAIModel) -> None:
        self._server = server

    @property
    def name(self) -> str:
        """As the user gave it."""
        return self._server.name

    @property
    def price(self) -> Price | None:
        """See `agent.models.Model`."""
        return self._server.price

    def sampling(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing is drawn: what is given alone."""
        return dict(given)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """The log-probability of each of `texts`, in order.

        Raises:
            agent.errors.RamifyError: as `agent.models.Model.complete`.
        """
        prompt, texts = str(messages[0]["content"]), list(sampling["texts"])
        parts = [self._part(prompt, texts[n : n + AT_ONCE]) for n in range(0, len(texts), AT_ONCE)]
        spent = sum((part.usage for part in parts), Usage())
        return Completion("", usage=spent, logprobs=tuple(each for part in parts for each in part.logprobs))

    def close(self) -> None:
        """See `agent.models.Model`."""
        self._server.close()

    def _part(self, prompt: str, texts: Sequence[str]) -> Completion:
        body = {
            "model": self.name.removeprefix("openai/"),
            "prompt": [prompt + text for text in texts],
            "echo": True,
            "logprobs": 0,
            "max_tokens": 0,
            "temperature": 0,
        }
        return self._server.answer("/completions", body, partial(self._read, len(prompt), len(texts)))

    def _read(self, begin: int, count: int, said: Any) -> Completion:
        """The sums over the tokens from the character `begin` on.

        Raises:
            ModelError: the answer has not the form that it should have.
        """
        try:
            choices = sorted(said["choices"], key=lambda choice: int(choice["index"]))
            found = tuple(_sum(choice["logprobs"], begin) for choice in choices)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"{self.name}: the server gives no log-probabilities of a prompt (`echo`): serve it with vLLM"
            ) from error
        if len(found) != count:
            raise ModelError(f"{self.name}: {len(found)} answers to {count} prompts")
        return Completion("", usage=usage(said.get("usage"), self.price), logprobs=found)


def _sum(told: Mapping[str, Any], begin: int) -> float:
    """Raises ValueError where the tokens are not those of the prompt and the text: of some answer, say."""
    at = told["text_offset"]
    found = [p for place, p in zip(at, told["token_logprobs"], strict=True) if place >= begin]
    if not found or at[0] != 0:
        raise ValueError("the prompt is not echoed")
    return float(sum(found))
