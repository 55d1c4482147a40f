"""Language models: one interface, `complete`, for every provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from statistics import fmean
from typing import Any, Protocol

from agent.budget import Usage
from agent.models.prices import Price

__all__ = ["BYTES_PER_TOKEN", "Ask", "Completion", "Message", "Model", "ToolCall", "directly"]

BYTES_PER_TOKEN = 3
"""Low on purpose, so that estimates of tokens are too high rather than too low: English and source code have about
four."""
Message = Mapping[str, Any]
"""A chat message in the OpenAI form: role, content, tool_calls, tool_call_id."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool. `arguments` is the JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The assistant message exactly as it has to be sent back, reasoning included. If only the model that wrote the
    reasoning can read it, the message names that model (`agent.models.wire.sendable`)."""
    logprobs: tuple[float, ...] = ()
    """The log-probability of each token of the answer, if they were requested and the server gave them."""
    first: Mapping[str, float] = field(default_factory=dict)
    """The log-probabilities of the likeliest first tokens, if they were requested and the server gave them."""

    @property
    def likelihood(self) -> float:
        """In [0, 1]: the geometric mean of the token probabilities; 1 if they are unknown."""
        return min(1.0, exp(fmean(self.logprobs))) if self.logprobs else 1.0

    @property
    def message(self) -> dict[str, Any]:
        """The assistant message as it has to be sent back."""
        if self.raw:
            return dict(self.raw)
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in self.tool_calls
        ]
        return {"role": "assistant", "content": self.text} | ({"tool_calls": calls} if calls else {})


class Model(Protocol):
    """A chat model with tools. Thread-safe."""

    @property
    def name(self) -> str:
        """The name that the user gave, for the record."""
        ...

    @property
    def price(self) -> Price | None:
        """The price of its tokens; None if unknown."""
        ...

    def sampling(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters of a request: these, together with those of the settings."""
        ...

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """Answer a conversation.

        Raises:
            agent.errors.ConfigError: no key, or no such model.
            agent.errors.ModelError: the provider refused, or failed for good.
            agent.errors.PolicyError: the conversation is too long for the model.
        """
        ...

    def close(self) -> None:
        """Release its connections. The model is not used again."""
        ...


class Ask(Protocol):
    """A function that asks a model on behalf of a run. The run's own (`agent.engine.model_calls`) records the call and
    charges it to the budget."""

    def __call__(
        self, model: Model, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """Return the model's answer to a conversation.

        Raises:
            agent.budget.BudgetSpent: the call does not fit into the run's budget. A policy does not catch this.
            agent.errors.RamifyError: as `Model.complete`.
        """
        ...


def directly(
    model: Model, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
) -> Completion:
    """An `Ask` outside any run: nothing is recorded or charged."""
    return model.complete(messages, tools, **sampling)
