"""What all clients have in common: parameters, deadlines, retries, and the pace of the provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from agent.models import Completion
from agent.models.deadlines import Deadlines
from agent.models.draws import draw
from agent.models.halt import Halt
from agent.models.pace import Slot, pace_of
from agent.models.parameters import Parameters
from agent.models.prices import Price
from agent.models.retry import Retry
from agent.models.warming import NO_PROMPT, Prompt, prompt_of


class Client:
    """How a model's requests are made."""

    def __init__(
        self,
        name: str,
        provider: str,
        *,
        price: Sequence[float] | None = None,
        temperature: float | None = None,
        reasoning_effort: str | None = None,
        thinking_tokens: int | None = None,
        body: Mapping[str, Any] | None = None,
        stream: bool = True,
        deadlines: Deadlines | None = None,
        max_concurrent: int | None = None,
        warm: bool = True,
        halt: Halt | None = None,
        retry: Retry | None = None,
    ) -> None:
        """`price` has the fields of `Price` in order; `body` has further fields of each request, which override all
        others; `max_concurrent` limits all models of the provider together; with `warm`, requests with a common prefix
        wait for the first of them (`agent.models.warming`)."""
        self.price = None if price is None else Price(*price)
        self.parameters = Parameters(temperature, reasoning_effort, thinking_tokens, dict(body or {}))
        self.streams = stream
        self.deadlines = deadlines or Deadlines()
        if not stream:
            self.deadlines = self.deadlines.unstreamed()
        self.halt = halt or Halt()
        self._name = name
        self._retry = retry or Retry(sleep=self.halt.sleep)
        self._pace = pace_of(provider, max_concurrent)
        self._warm = warm

    def prompt(
        self, tools: Sequence[object], messages: Sequence[object], sampling: Mapping[str, Any] | None = None
    ) -> Prompt:
        """See `agent.models.warming.prompt_of`."""
        patience_s = self.deadlines.first_token_s
        return prompt_of(self._name, tools, messages, patience_s, sampling) if self._warm else NO_PROMPT

    def run(self, call: Callable[[Slot], Completion], prompt: Prompt) -> Completion:
        """See `agent.models.retry.Retry.run`."""
        return self._retry.run(call, self._pace, prompt)

    def draw(self, ask: Callable[[Slot, int], Sequence[Completion]], prompt: Prompt) -> Completion:
        """As `run`; `ask(slot, count)` may be asked for several answers (`agent.models.draws`)."""
        return self.run(lambda slot: draw(slot, self._pace, partial(ask, slot)), prompt)
