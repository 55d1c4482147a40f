"""Model calls: the one place that every model call of a run goes through.

Invariants: a call is reserved in the budget before it is made, and paid for and recorded the moment it is answered; a
request that an earlier session paid for is not sent again.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from agent.budget import Usage
from agent.engine.recorder import Recorder
from agent.errors import RamifyError, Stopped, TooLong, ToolsRefused
from agent.models import BYTES_PER_TOKEN, Ask, Completion, Message, Model
from agent.models.prices import Price
from agent.models.warming import KEPT_S
from agent.run.events import Asked, Refusal, Refused, Spent
from agent.run.message_store import Passage, digest_of
from agent.run.tree.node import NodeId

ANSWER_TOKENS = 1000
"""The expected length of the first answer without a limit; later answers are expected as long as the longest so far."""


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that an answer depends on."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    sampling: Mapping[str, Any]

    @property
    def conversation(self) -> tuple[Any, ...]:
        """The tools and the messages, as `agent.run.message_store` keeps them."""
        return list(self.tools), *self.messages

    def digest(self, conversation: str) -> str:
        """The digest of the request, given that of its conversation."""
        return digest_of([self.model, conversation, self.sampling])


class RecordedAnswers:
    """Recorded answers that have not been used yet. Each is given once, to an equal request. Thread-safe."""

    def __init__(self, recorded: Iterable[Asked] = ()) -> None:
        self._waiting: defaultdict[str, deque[Asked]] = defaultdict(deque)
        self._lock = Lock()
        for asked in recorded:
            self._waiting[asked.request].append(asked)

    def take(self, request: str) -> Completion | None:
        """Return the oldest unused answer to the request with this digest, or None."""
        with self._lock:
            waiting = self._waiting.get(request)
            return waiting.popleft().answer if waiting else None


class Forecast:
    """Estimates what a call will use, rather too high than too low. Thread-safe."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._longest = 0
        self._highest_price: dict[str, float] = {}
        """The highest price of a call so far, in dollars a token, by model."""
        self._surcharge: dict[str, float] = {}
        """The highest ratio of what a call cost to its listed price, at least 1, by model."""
        self._caches: set[tuple[str, bool]] = set()
        """Models whose prompts were read from a cache at least once, and whether the request had tools."""
        self._sent: dict[tuple[str, str], float] = {}
        """When a model was last sent this conversation, or one that begins with it."""

    def learn(self, asked: Asked) -> None:
        """Learn from a call that was answered, now or in an earlier session."""
        usage = asked.answer.usage
        self._longest = max(self._longest, usage.tokens_out)
        if usage.tokens:
            price = usage.cost_usd / usage.tokens
            self._highest_price[asked.model] = max(price, self._highest_price.get(asked.model, 0.0))

    def answered(self, request: Request, usage: Usage, beginnings: Iterable[str], price: Price | None) -> None:
        """Learn from a call that was answered just now; `beginnings` are the digests of its conversation's
        beginnings."""
        model, now = request.model, self._now()
        for beginning in beginnings:
            self._sent[model, beginning] = now
        if usage.tokens_cached:
            self._caches.add((model, bool(request.tools)))
        if price is not None and (listed := _listed(price, usage.tokens_in, usage.tokens_cached, usage.tokens_out)):
            self._surcharge[model] = max(usage.cost_usd / listed, self._surcharge.get(model, 1.0))

    def of(self, request: Request, passage: Passage, price: Price | None) -> Usage:
        """Estimate a request: its tokens from its length, and those of the answer from the limit or the longest answer
        so far. The dollars are the listed price times the surcharge; a beginning that the provider was sent recently
        has the price of cached tokens. Without a listed price, the highest price so far counts; 0 if that is unknown,
        too."""
        lengths = [len(str(value).encode("utf-8", "surrogatepass")) for value in request.conversation]
        tokens_in = sum(lengths) // BYTES_PER_TOKEN + 1
        limits = [request.sampling[key] for key in ("max_tokens", "max_completion_tokens") if key in request.sampling]
        tokens_out = min(limits, default=self._longest or ANSWER_TOKENS)
        if price is None:
            dollars = self._highest_price.get(request.model, 0.0) * (tokens_in + tokens_out)
        else:
            known = len(lengths) - len(passage.new) if self._is_cached(request, passage.after) else 0
            cached = sum(lengths[:known]) // BYTES_PER_TOKEN
            dollars = _listed(price, tokens_in, cached, tokens_out) * self._surcharge.get(request.model, 1.0)
        return Usage(model_calls=1, tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=dollars)

    def _is_cached(self, request: Request, beginning: str) -> bool:
        """Whether the provider most likely still has a beginning of the request in its cache."""
        sent = self._sent.get((request.model, beginning), -math.inf)
        return (request.model, bool(request.tools)) in self._caches and sent + KEPT_S > self._now()


def _listed(price: Price, tokens_in: int, cached: int, tokens_out: int) -> float:
    """Return the dollars by the listed price, if all tokens that are not read from a cache are written to it."""
    details = {"cached_tokens": cached, "cache_creation_tokens": tokens_in - cached}
    return price.of({"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "prompt_tokens_details": details})


class ModelGateway:
    """Asks models for a run. One object serves one session; thread-safe."""

    def __init__(self, record: Recorder) -> None:
        self._record, self._run, self._budget = record, record.run, record.budget
        self._paid = RecordedAnswers(self._run.asked)
        self._forecast = Forecast()
        self._waited_for = ""
        for asked in self._run.asked:
            self._forecast.learn(asked)

    @property
    def silent(self) -> str:
        """The model that never answered; empty if any model has answered, or none was asked."""
        return "" if self._run.asked else self._waited_for

    def at(self, node: NodeId | None, purpose: str) -> Ask:
        """Return a function that asks on behalf of a node and for a purpose, such as `policy`; both are recorded."""

        def ask(
            model: Model, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
        ) -> Completion:
            request = Request(model.name, tuple(messages), tuple(tools), model.sampling(sampling))
            return self._ask(model, request, node, purpose)

        return ask

    def _ask(self, model: Model, request: Request, node: NodeId | None, purpose: str) -> Completion:
        """Return the model's answer and record it, or return an answer that an earlier session paid for and did not
        use.

        Raises:
            agent.budget.BudgetSpent: the call does not fit.
            agent.errors.RamifyError: as `agent.models.Model.complete`.
        """
        passage = self._run.conversations.shorten(request.conversation)
        digest = request.digest(passage.digest)
        if (paid := self._paid.take(digest)) is not None:
            return paid
        facts = (request.model, digest, passage, dict(request.sampling))
        with self._budget.reserve(self._forecast.of(request, passage, model.price)) as charge:
            try:
                answer = model.complete(request.messages, request.tools, **request.sampling)
            except RamifyError as error:
                if error.usage.model_calls:
                    self._record(Spent(error.usage, purpose, node), charge)
                if isinstance(error, Stopped):
                    self._waited_for = model.name
                if isinstance(error, (TooLong, ToolsRefused)):
                    kind: Refusal = "TooLong" if isinstance(error, TooLong) else "ToolsRefused"
                    self._record(Refused(*facts, kind, str(error), node, purpose))
                raise
            asked = Asked(*facts, answer, node, purpose)
            self._record(asked, charge)
        self._forecast.learn(asked)
        beginnings = self._run.conversations.beginnings(passage.digest)
        self._forecast.answered(request, answer.usage, beginnings, model.price)
        return answer
