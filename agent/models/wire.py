"""The wire format of chat completions: read an answer's JSON into a Completion, and token counts into dollars."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agent.budget import Usage
from agent.errors import RamifyError
from agent.models import Completion, Message, ToolCall
from agent.models.faults import fault
from agent.models.prices import Price
from agent.models.retry import UNKNOWN, Transient
from agent.models.stream import assemble, events, is_stream
from agent.redaction import redacted

STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
"""The fields of a request for a streamed answer."""
_SIGNED = ("thinking_blocks", "response_items")
"""Fields with reasoning that only the model that wrote it accepts back."""
_BY = "reasoning_by"
"""The field of a message that names this model. It is never sent."""


def signed(message: dict[str, Any], model: str) -> dict[str, Any]:
    """A message to keep; it names the model if only that model accepts its reasoning back."""
    return message | ({_BY: model} if any(key in message for key in _SIGNED) else {})


def sendable(messages: Sequence[Message], model: str) -> list[dict[str, Any]]:
    """A conversation for a model, without the reasoning of other models."""

    def sent(message: Message) -> dict[str, Any]:
        foreign = _SIGNED if message.get(_BY, model) != model else ()
        return {key: value for key, value in message.items() if key != _BY and key not in foreign}

    return [sent(message) for message in messages]


def decode(data: bytes, model: str, assemble: Callable[[Iterable[Any]], Any] = assemble) -> Any:
    """An answer's JSON, streamed or not, with lone surrogates (which cannot be stored) replaced. `assemble` builds the
    answer from the events of a stream.

    Raises:
        Transient: it is neither JSON nor a stream of JSON.
    """
    try:
        return storable(assemble(events(data)) if is_stream(data) else json.loads(data))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise Transient(f"{model}: the answer is not JSON: {redacted(repr(data[:120]))}", usage=UNKNOWN) from error


def storable(values: Any) -> Any:
    """JSON that can be written as UTF-8 and holds no secret. The two halves of a character that arrived in separate
    pieces are joined."""
    whole = json.loads(json.dumps(values))
    return json.loads(redacted(json.dumps(whole, ensure_ascii=False)).encode("utf-8", "replace"))


def completions(body: Any, model: str, price: Price | None = None, cost_usd: float | None = None) -> list[Completion]:
    """The choices of an answer: the first, with the usage of the whole call, and those of the others that can be read.

    Raises:
        Transient, agent.errors.RamifyError: as `completion`.
    """
    first = completion(body, model, price, cost_usd)
    readable = [first]
    for choice in body["choices"][1:]:
        with suppress(Transient, RamifyError):
            readable.append(replace(completion({"choices": [choice]}, model), usage=Usage()))
    return readable


def completion(body: Any, model: str, price: Price | None = None, cost_usd: float | None = None) -> Completion:
    """The first choice of an answer. `cost_usd` is its cost if that is known without a `price`.

    Raises:
        Transient: there is no choice, or it is malformed.
        agent.errors.RamifyError: the server reports a permanent error.
    """
    try:
        spent = usage(body.get("usage"), price, cost_usd)
    except (AttributeError, TypeError):
        spent = UNKNOWN
    try:
        choice = body["choices"][0]
        message: dict[str, Any] = choice["message"]
        tool_calls = tuple(_tool_calls(message.get("tool_calls") or []))
        text = text_of(message.get("content"))
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        problem = _problem(body, model)
        problem.usage = spent
        raise problem from error
    finish = choice.get("finish_reason") or "stop"
    kept = signed(_to_send_back(message), model)
    return Completion(text, tool_calls, spent, finish, kept, _logprobs(choice), _first(choice))


def _problem(body: Any, model: str) -> RamifyError | Transient:
    """The exception for an answer without a message."""
    reported = body.get("error") if isinstance(body, dict) else None
    if isinstance(reported, dict) and isinstance(reported.get("message"), str):
        status = reported.get("code")
        return fault(model, reported["message"], status if isinstance(status, int) else None, str(status))
    return Transient(f"{model}: the answer holds no message: {redacted(json.dumps(body)[:200])}")


def usage(counts: Mapping[str, Any] | None, price: Price | None, cost_usd: float | None = None) -> Usage:
    """One call's usage. Without a price, or without counts to apply it to, the call is unpriced, not free."""
    counts = counts or {}
    tokens_in, tokens_out = counts.get("prompt_tokens") or 0, counts.get("completion_tokens") or 0
    cached = (counts.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    if price is not None and counts:
        cost_usd = price.of(counts)
    return Usage(
        model_calls=1,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=cached,
        cost_usd=cost_usd or 0.0,
        unpriced_calls=1 if cost_usd is None else 0,
    )


def _tool_calls(calls: list[dict[str, Any]]) -> Iterator[ToolCall]:
    """The calls, completed in place: each needs an id for its result, and its arguments as text."""
    for number, call in enumerate(calls):
        function = call["function"]
        call["id"] = call.get("id") or f"call_{number}"
        if not isinstance(function.get("arguments"), str):
            function["arguments"] = json.dumps(function.get("arguments") or {})
        yield ToolCall(call["id"], function["name"], function["arguments"])


def _logprobs(choice: Mapping[str, Any]) -> tuple[float, ...]:
    """The log-probability of each token; empty if they are malformed or one is not finite."""
    try:
        logprobs = tuple(float(token["logprob"]) for token in (choice.get("logprobs") or {}).get("content") or ())
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()
    return logprobs if all(map(math.isfinite, logprobs)) else ()


def _first(choice: Mapping[str, Any]) -> dict[str, float]:
    """The log-probabilities of the likeliest first tokens; empty if there are none or they are malformed."""
    try:
        tokens = (choice.get("logprobs") or {}).get("content") or ()
        top = (tokens[0].get("top_logprobs") or ()) if tokens else ()
        likeliest = [(str(each["token"]), float(each["logprob"])) for each in top]
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return {token: logprob for token, logprob in likeliest if math.isfinite(logprob)}


def text_of(content: object) -> str:
    """The text of a message's content; some servers split it into parts."""
    if isinstance(content, (list, tuple)):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _to_send_back(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its reasoning, but without the empty fields that servers refuse to take back, and without the
    fields that litellm duplicates."""
    kept = {key: value for key, value in message.items() if value not in (None, [], {}, "")}
    if isinstance(special := kept.pop("provider_specific_fields", None), dict):
        special = {key: value for key, value in special.items() if value is not None and key not in _SIGNED}
        kept |= {"provider_specific_fields": special} if special else {}
    return {"role": "assistant", "content": message.get("content")} | kept
