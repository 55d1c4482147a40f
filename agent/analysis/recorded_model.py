"""Recorded models replay the answers in a run's journal; the model itself is asked only for missing answers, if at
all."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

from agent.engine.model_calls import Request
from agent.errors import PolicyError, TooLong, ToolsRefused
from agent.models import Completion, Message, Model
from agent.models.parameters import Parameters
from agent.models.prices import Price
from agent.run.events import Asked, Refused
from agent.run.message_store import digest_of
from agent.run.run import Run

_REFUSALS = {"TooLong": TooLong, "ToolsRefused": ToolsRefused}
_RESULT = re.compile(r"`result-[0-9a-f]{16}`|<(result-[0-9a-f]{16})>.*?</\1>", re.DOTALL)
"""The output of a command in a message to a model without tool calls: between two lines with a random tag."""


class Archive:
    """The answers of a run, each given out once. Thread-safe.

    An answer fits a request if its own request is the same; otherwise if it differs only in the output of commands;
    otherwise if it differs only in the seed, which is another draw from the same distribution.
    """

    def __init__(self, run: Run) -> None:
        self._lock = Lock()
        self._answers = [asked.answer for asked in run.asked]
        self._waiting: defaultdict[str, list[int]] = defaultdict(list)
        self._given: set[int] = set()
        self.missing: list[str] = []
        """The model's name for each request that the run has no answer to."""
        conversations = run.conversations
        bare = cache(lambda name: digest_of(_bare(conversations.value(name))))

        def keys(recorded: Asked | Refused) -> tuple[str, str, str]:
            names = conversations.names(recorded.conversation.digest)
            return _keys(recorded.model, names, [bare(name) for name in names], recorded.sampling)

        for number, asked in enumerate(run.asked):
            for key in keys(asked):
                self._waiting[key].append(number)
        self._refusals = {key: refused for refused in run.refusals for key in keys(refused)}

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def given(self) -> int:
        """How many answers were given out."""
        return len(self._given)

    def find(self, request: Request) -> Completion | None:
        """The answer that fits the request best and was not given out yet; None: there is no such answer, and the
        request is counted as missing. Of several answers the oldest is taken; if the output of commands differs, the
        newest, from the last time that they were run.

        Raises:
            agent.errors.TooLong, agent.errors.ToolsRefused: the journal has a refusal of this request.
        """
        names = [digest_of(value) for value in request.conversation]
        bare = [digest_of(_bare(value)) for value in request.conversation]
        with self._lock:
            exact, unprinted, unseeded = _keys(request.model, names, bare, request.sampling)
            for key, pick in ((exact, min), (unprinted, max), (unseeded, min)):
                number = pick((n for n in self._waiting.get(key, ()) if n not in self._given), default=None)
                if number is not None:
                    self._given.add(number)
                    return self._answers[number]
            for key in (exact, unprinted, unseeded):
                if (refused := self._refusals.get(key)) is not None:
                    raise _REFUSALS[refused.error](refused.reason)
            self.missing.append(request.model)
            return None


@dataclass(slots=True)
class Recorded:
    """Replaces a model by its recorded answers, which are already paid for. `make` makes the model itself, for requests
    that the run has no answer to; None: such a request fails."""

    name: str
    archive: Archive
    make: Callable[[], Model] | None = None
    price: Price | None = None
    parameters: Parameters = field(default_factory=Parameters)
    _model: Model | None = None
    _making: Lock = field(default_factory=Lock)

    def sampling(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """As the model that it replaces."""
        return self.parameters.with_those_of(given)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """The recorded answer.

        Raises:
            TooLong, ToolsRefused: a refusal was recorded.
            PolicyError: there is no recorded answer, and the model may not be asked.
        """
        answer = self.archive.find(Request(self.name, tuple(messages), tuple(tools), self.sampling(sampling)))
        if answer is not None:
            return answer
        if self.make is None:
            raise PolicyError(f"the replayed run has no answer of {self.name} to this request; --live asks for one")
        with self._making:
            self._model = self._model or self.make()
        return self._model.complete(messages, tools, **sampling)

    def close(self) -> None:
        """Close the model, if it was asked."""
        if self._model is not None:
            self._model.close()


def _keys(model: str, names: Sequence[str], bare: Sequence[str], sampling: Mapping[str, Any]) -> tuple[str, str, str]:
    """The keys that requests with the same answer share, the strictest first. `names` are the digests of the messages,
    `bare` those of the messages without the output of commands."""
    unseeded = {key: value for key, value in sampling.items() if key != "seed"}
    return (
        digest_of(["exact", model, list(names), dict(sampling)]),
        digest_of(["unprinted", model, list(bare), dict(sampling)]),
        digest_of(["unseeded", model, list(names), unseeded]),
    )


def _bare(value: Any) -> Any:
    """A message without the output of commands, in either form (`agent.policy.chat.dialects`)."""
    match value:
        case {"role": "tool"}:
            return {**value, "content": ""}
        case {"role": "user", "content": str(content)}:
            return {**value, "content": _RESULT.sub("", content)}
    return value
