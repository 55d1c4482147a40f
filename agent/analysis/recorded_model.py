"""Recorded models: they give the answers that a run has in its journal, and ask nobody, or only for what it lacks."""

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

__all__ = ["Archive", "Recorded"]

_REFUSALS = {"TooLong": TooLong, "ToolsRefused": ToolsRefused}
_RESULT = re.compile(r"`result-[0-9a-f]{16}`|<(result-[0-9a-f]{16})>.*?</\1>", re.DOTALL)
"""What a command printed, as a model without tool calls is told it, between two lines that nobody else knows."""


class Archive:
    """The answers of a run, each to be given once. Thread-safe.

    An answer applies to the request that it was given to; else to one that differs from that only in what commands
    printed; else to one that differs only in the seed, which is another draw from the same distribution.
    """

    def __init__(self, run: Run) -> None:
        self._lock = Lock()
        self._answers = [asked.answer for asked in run.asked]
        self._waiting: defaultdict[str, list[int]] = defaultdict(list)
        self._given: set[int] = set()
        self.missing: list[str] = []
        """The models that were asked what the run has no answer to, a name a request."""
        said = run.conversations
        bare = cache(lambda name: digest_of(_bare(said.value(name))))

        def keys(recorded: Asked | Refused) -> tuple[str, str, str]:
            names = said.names(recorded.conversation.digest)
            return _keys(recorded.model, names, [bare(name) for name in names], recorded.sampling)

        for number, asked in enumerate(run.asked):
            for key in keys(asked):
                self._waiting[key].append(number)
        self._refusals = {key: refused for refused in run.refused for key in keys(refused)}

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def given(self) -> int:
        """How many answers were given."""
        return len(self._given)

    def find(self, request: Request) -> Completion | None:
        """What the request came to: the answer that applies best and was not given yet; None, and the request
        is missing. Of several the oldest, but where commands printed something else the newest: that of the last time
        that they were run.

        Raises:
            agent.errors.TooLong, agent.errors.ToolsRefused: the run was refused an answer to it.
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
    """Stands for a model of a run, whose answers are paid for. `make` gives the model itself, for what the run has no
    answer to; None: such a request fails."""

    name: str
    archive: Archive
    make: Callable[[], Model] | None = None
    price: Price | None = None
    parameters: Parameters = field(default_factory=Parameters)
    _model: Model | None = None
    _making: Lock = field(default_factory=Lock)

    def sampling(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """As the model that it stands for."""
        return self.parameters.with_those_of(given)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """The recorded answer.

        Raises:
            TooLong, ToolsRefused: a refusal was recorded.
            PolicyError: there is none, and the model is not to be asked.
        """
        found = self.archive.find(Request(self.name, tuple(messages), tuple(tools), self.sampling(sampling)))
        if found is not None:
            return found
        if self.make is None:
            raise PolicyError(f"the replayed run has no answer of {self.name} to this request; --live asks for one")
        with self._making:
            self._model = self._model or self.make()
        return self._model.complete(messages, tools, **sampling)

    def close(self) -> None:
        """Give back what the model holds, if it was asked."""
        if self._model is not None:
            self._model.close()


def _keys(model: str, names: Sequence[str], bare: Sequence[str], sampling: Mapping[str, Any]) -> tuple[str, str, str]:
    """What requests that an answer applies to have in common, the closest first. `names` are the digests of what was
    said, `bare` those of the same without what commands printed."""
    unseeded = {key: value for key, value in sampling.items() if key != "seed"}
    return (
        digest_of(["exact", model, list(names), dict(sampling)]),
        digest_of(["unprinted", model, list(bare), dict(sampling)]),
        digest_of(["unseeded", model, list(names), unseeded]),
    )


def _bare(value: Any) -> Any:
    """A message without what commands printed, in either form (`agent.policy.chat.dialects`)."""
    match value:
        case {"role": "tool"}:
            return {**value, "content": ""}
        case {"role": "user", "content": str(content)}:
            return {**value, "content": _RESULT.sub("", content)}
    return value
