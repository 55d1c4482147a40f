"""The Responses interface of OpenAI: what a conversation is there, and an answer of it read into a Completion.

Models that reason keep their reasoning from turn to turn only here, as items that nobody else can read. Nothing is
stored at the provider: the items of an answer are kept in its message and sent back as they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent.budget import Usage
from agent.errors import RamifyError
from agent.models import Completion, Message, ToolCall
from agent.models.faults import fault
from agent.models.openai import Interface, OpenAIModel
from agent.models.parameters import without
from agent.models.prices import Price
from agent.models.retry import UNKNOWN, Transient
from agent.models.warming import NO_PROMPT, prompt_of
from agent.models.wire import sendable, signed, usage

__all__ = ["ResponsesModel"]

ITEMS = "response_items"
"""Where a message keeps the items of its answer."""
_UNKNOWN_HERE = ("seed", "n", "logprobs", "thinking_tokens")
"""Parameters that this interface does not have."""
_PASSING = frozenset({"rate_limit_exceeded", "server_error"})
_BEGUN = (b'"response.output', b'"response.reasoning', b'"response.completed', b'"response.incomplete')
"""Types of events; those before them only say that the request was received."""


def _has_begun(piece: bytes) -> bool:
    return piece.lstrip().startswith(b"{") or any(begun in piece for begun in _BEGUN)


class ResponsesModel:
    """A model of a server that speaks the Responses interface, at `/responses`. Thread-safe, as the one that it speaks
    through."""

    def __init__(self, server: OpenAIModel, *, reasons: bool = True, stream: bool = True, warm: bool = True) -> None:
        """A model that `reasons` is given no temperature. `stream` and `warm` are as for the server, whose deadlines
        have to bear that such a model is silent in the middle of an answer."""
        self._server = server
        self._reasons = reasons
        self._stream = {"stream": True} if stream else {}
        self._warm = warm

    @property
    def name(self) -> str:
        """As the user gave it."""
        return self._server.name

    @property
    def price(self) -> Price | None:
        """See `agent.models.Model`."""
        return self._server.price

    def sampling(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """See `agent.models.Model`."""
        return self._server.sampling(given)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """See `agent.models.Model`."""
        wanted = without(self.sampling(sampling), *_UNKNOWN_HERE, *(["temperature"] if self._reasons else []))
        body = _request(self.name.removeprefix("openai/"), sendable(messages, self.name), tools, wanted) | self._stream
        patience_s = self._server.deadlines.first_token_s
        prompt = prompt_of(self.name, tools, messages, patience_s) if self._warm else NO_PROMPT
        return self._server.answer("/responses", body, self._read, prompt, Interface(_assemble, _has_begun))

    def close(self) -> None:
        """See `agent.models.Model`."""
        self._server.close()

    def _read(self, said: Any) -> Completion:
        return _completion(said, self.name, self.price)


def _request(
    name: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], fields: dict[str, Any]
) -> dict[str, Any]:
    """The body of a request to the model of this name. Fields are called as in the chat completions interface, or as
    here."""
    if (effort := fields.pop("reasoning_effort", None)) is not None:
        fields["reasoning"] = {"effort": effort, **fields.get("reasoning", {})}
    for limit in ("max_tokens", "max_completion_tokens"):
        if limit in fields:
            fields["max_output_tokens"] = fields.pop(limit)
    body = {"model": name, "input": [item for message in messages for item in _items(message)]}
    if tools:
        body["tools"] = [{"type": "function", "strict": False, **tool["function"]} for tool in tools]
    return {**body, "store": False, "include": ["reasoning.encrypted_content"], **fields}


def _items(message: Message) -> Iterator[dict[str, Any]]:
    match message["role"]:
        case "tool":
            yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
        case "assistant":
            yield from _said(message)
        case role:
            yield {"role": role, "content": message["content"]}


def _said(message: Message) -> Iterator[dict[str, Any]]:
    """An answer's items, with the arguments that its calls have now; made of its words and calls where it has none."""
    calls = {call["id"]: call["function"] for call in message.get("tool_calls") or ()}
    if ITEMS in message:
        for item in message[ITEMS]:
            if item["type"] != "function_call":
                yield item
            elif item["call_id"] in calls:
                yield {**item, "arguments": calls[item["call_id"]]["arguments"]}
        return
    if message.get("content"):
        yield {"role": "assistant", "content": message["content"]}
    for name, call in calls.items():
        yield {"type": "function_call", "call_id": name, "name": call["name"], "arguments": call["arguments"]}


def _assemble(events: Iterable[Any]) -> dict[str, Any]:
    """The response whose events these are, which its last one holds; with an `error` when there is none.

    Raises:
        AttributeError, KeyError, TypeError: an event has not the form that it should have.
    """
    items = []
    for event in events:
        match event.get("type"):
            case "response.output_item.done":
                items.append(event["item"])
            case "response.completed" | "response.incomplete" | "response.failed":
                response: dict[str, Any] = event["response"]
                return {**response, "output": response.get("output") or items}
            case "error":
                return {"error": event.get("error") or event}
    return {"error": {"message": "the stream ended before the answer did", "code": "server_error"}}


def _completion(body: Any, model: str, price: Price | None = None) -> Completion:
    """A response as it is needed here.

    Raises:
        Transient: it has not the form that it should have, or failed and may be asked for again.
        agent.errors.RamifyError: it failed for good.
    """
    try:
        spent = usage(_counts(body.get("usage")), price)
    except (AttributeError, TypeError):
        spent = UNKNOWN
    try:
        if body.get("error") or body.get("status") == "failed":
            raise _problem(body.get("error") or {}, model, spent)
        items = [_kept(item) for item in body["output"]]
        text = "".join(_words(items))
        calls = tuple(ToolCall(i["call_id"], i["name"], i["arguments"]) for i in items if i["type"] == "function_call")
        cut_off = (body.get("incomplete_details") or {}).get("reason") or ""
    except (AttributeError, KeyError, TypeError) as error:
        raise Transient(f"{model}: the answer is no response: {error!r}", usage=spent) from error
    finish = cut_off.replace("max_output_tokens", "length") or ("tool_calls" if calls else "stop")
    message = signed({**Completion(text, calls).message, ITEMS: items}, model)
    return Completion(text, calls, spent, finish, message)


def _problem(reported: Mapping[str, Any], model: str, spent: Usage) -> RamifyError | Transient:
    code = str(reported.get("code") or "server_error")
    said = str(reported.get("message") or "the answer failed")
    found = fault(model, said, None if code in _PASSING else 400, code)
    found.usage = spent
    return found


def _kept(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item without its empty fields, which are refused when they come back."""
    return {key: value for key, value in item.items() if value is not None}


def _words(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What is said beside the calls, refusals too."""
    for item in items:
        for part in item["content"] if item["type"] == "message" else ():
            yield part.get("text") or part.get("refusal") or ""


def _counts(used: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was counted, as the chat completions interface calls it."""
    if not used:
        return {}
    return {
        "prompt_tokens": used.get("input_tokens"),
        "completion_tokens": used.get("output_tokens"),
        "prompt_tokens_details": used.get("input_tokens_details"),
    }
