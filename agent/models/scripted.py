"""A model that says what it is told to: for tests of whatever uses a model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent.budget import Usage
from agent.errors import ModelError
from agent.models import Completion, Message, ToolCall
from agent.models.prices import Price

__all__ = ["ScriptedModel", "answer"]

Script = Iterable[Completion] | Callable[[Sequence[Message]], Completion]


class ScriptedModel:
    """Gives the completions of a list, one a call, or what a function makes of the conversation."""

    def __init__(self, script: Script, name: str = "scripted", price: Price | None = None) -> None:
        self._name = name
        self._price = price
        self._lock = threading.Lock()
        self._script = script if callable(script) else iter(tuple(script))
        self.heard: list[tuple[Message, ...]] = []
        """The conversations that were to be answered, oldest first."""

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    @property
    def price(self) -> Price | None:
        """As it was given."""
        return self._price

    def sampling(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """As it is given."""
        return dict(given)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """The next completion.

        Raises:
            ModelError: the list has come to its end.
        """
        with self._lock:
            self.heard.append(tuple(messages))
            if callable(self._script):
                return self._script(messages)
            said = next(self._script, None)
            if said is None:
                raise ModelError(f"{self._name}: the script ended after {len(self.heard) - 1} answers")
            return said

    def close(self) -> None:
        """Nothing to do."""


def answer(text: str = "", *calls: tuple[str, Mapping[str, Any]]) -> Completion:
    """A completion that says `text` and calls tools: pairs of a name and arguments."""
    tool_calls = tuple(ToolCall(f"call_{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls))
    usage = Usage(model_calls=1, unpriced_calls=1)
    return Completion(text, tool_calls, usage, finish_reason="tool_calls" if calls else "stop")
