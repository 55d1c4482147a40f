"""A model with scripted answers, for tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent.budget import Usage
from agent.counting import counted
from agent.errors import ModelError
from agent.models import Completion, Message, ToolCall
from agent.models.prices import Price

Script = Iterable[Completion] | Callable[[Sequence[Message]], Completion]


class ScriptedModel:
    """Answers with the completions of a list, one per call, or with a function of the conversation."""

    def __init__(self, script: Script, name: str = "scripted", price: Price | None = None) -> None:
        self.name = name
        self.price = price
        self._lock = threading.Lock()
        self._script = script if callable(script) else iter(tuple(script))
        self.heard: list[tuple[Message, ...]] = []
        """The conversations so far, oldest first."""

    def sampling(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The same parameters."""
        return dict(parameters)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """The next completion.

        Raises:
            ModelError: the list is used up.
        """
        with self._lock:
            self.heard.append(tuple(messages))
            if callable(self._script):
                return self._script(messages)
            completion = next(self._script, None)
            if completion is None:
                raise ModelError(f"{self.name}: the script ended after {counted(len(self.heard) - 1, 'answer')}")
            return completion

    def close(self) -> None:
        """Does nothing."""


def answer(text: str = "", *calls: tuple[str, Mapping[str, Any]]) -> Completion:
    """A completion with this text and these tool calls, pairs of a name and arguments."""
    tool_calls = tuple(ToolCall(f"call_{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls))
    usage = Usage(model_calls=1, unpriced_calls=1)
    return Completion(text, tool_calls, usage, finish_reason="tool_calls" if calls else "stop")
