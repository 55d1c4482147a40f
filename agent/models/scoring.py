"""A model that scores given texts and generates none.

It returns the log-probability of each of `texts` as a continuation of the one message, in `Completion.logprobs`. The
server needs the older OpenAI interface with `echo` and `logprobs`, as vLLM has it (`/v1/completions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agent.budget import Usage
from agent.errors import ModelError
from agent.models import Completion, Message
from agent.models.openai import OpenAIModel
from agent.models.wire import usage

AT_ONCE = 64
"""Texts per request."""


class ScoringModel:
    """A scoring model behind a base URL. Thread-safe, like `server`."""

    def __init__(self, server: OpenAIModel) -> None:
        self._server = server
        self.name, self.price = server.name, server.price

    def sampling(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Only these parameters: nothing is drawn, so the settings do not matter."""
        return dict(parameters)

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
        return Completion("", usage=spent, logprobs=tuple(logprob for part in parts for logprob in part.logprobs))

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

    def _read(self, begin: int, count: int, body: Any) -> Completion:
        """The sums over the tokens from the character `begin` on.

        Raises:
            ModelError: the answer is malformed.
        """
        try:
            choices = sorted(body["choices"], key=lambda choice: int(choice["index"]))
            sums = tuple(_sum(choice["logprobs"], begin) for choice in choices)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"{self.name}: the server gives no log-probabilities of a prompt (`echo`): serve it with vLLM"
            ) from error
        if len(sums) != count:
            raise ModelError(f"{self.name}: {len(sums)} answers to {count} prompts")
        return Completion("", usage=usage(body.get("usage"), self.price), logprobs=sums)


def _sum(logprobs: Mapping[str, Any], begin: int) -> float:
    """Sum the log-probabilities from the character `begin` on. Raises ValueError if the tokens are not those of the
    prompt and the text."""
    offsets = logprobs["text_offset"]
    terms = [p for offset, p in zip(offsets, logprobs["token_logprobs"], strict=True) if offset >= begin]
    if not terms or offsets[0] != 0:
        raise ValueError("the prompt is not echoed")
    return float(sum(terms))
