"""Language models: one method, `complete`, whoever serves the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from statistics import fmean
from typing import Any, Protocol

from agent.budget import Usage
from agent.models.prices import Price

__all__ = ["Ask", "Completion", "Message", "Model", "ToolCall", "directly"]

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
    """The assistant message exactly as it has to be sent back, reasoning included, and which model's that is where it
    is nobody else's (`agent.models.wire.sendable`)."""
    logprobs: tuple[float, ...] = ()
    """The log-probability of each token of the answer, where they were asked for and the server gave them."""

    @property
    def likelihood(self) -> float:
        """In [0, 1]: the geometric mean of the tokens' probabilities; 1 where they are not known."""
        return min(1.0, exp(fmean(self.logprobs))) if self.logprobs else 1.0

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message as it has to be sent back."""
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
        """As the user gave it, for the record."""
        ...

    @property
    def price(self) -> Price | None:
        """What its tokens cost; None: unknown."""
        ...

    def sampling(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All that a request with these parameters asks for, those of the settings included."""
        ...

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """Answer a conversation.

        Raises:
            agent.errors.ConfigError: no key, or no such model.
            agent.errors.ModelError: the provider refused or failed for good.
            agent.errors.PolicyError: the conversation is too long for the model.
        """
        ...

    def close(self) -> None:
        """Give back its connections; it is not asked again."""
        ...


class Ask(Protocol):
    """How whoever works for a run asks a model. The run's own (`agent.engine.model_calls`) records the call and pays
    for it."""

    def __call__(
        self, model: Model, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """The answer to a conversation.

        Raises:
            agent.budget.BudgetSpent: the call does not fit in what the run may spend. A policy lets it through.
            agent.errors.RamifyError: as `Model.complete`.
        """
        ...


def directly(
    model: Model, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
) -> Completion:
    """An `Ask` outside of any run: nothing is recorded and nothing counts."""
    return model.complete(messages, tools, **sampling)
