"""OpenAI's Responses interface: translate a conversation into a request, and an answer into a Completion.

Reasoning models keep their reasoning from turn to turn only through this interface, as items that only they can read.
Nothing is stored at the provider: the items of an answer are kept in its message and sent back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from agent.budget import Usage
from agent.errors import RamifyError
from agent.models import Completion, Message, ToolCall
from agent.models.faults import fault
from agent.models.openai import Interface, OpenAIModel
from agent.models.parameters import without
from agent.models.prices import Price
from agent.models.retry import UNKNOWN, Transient
from agent.models.wire import sendable, signed, usage

ITEMS = "response_items"
"""The field of a message that keeps the items of its answer."""
_UNSUPPORTED = ("seed", "n", "logprobs", "thinking_tokens")
"""Parameters that this interface does not have."""
_PASSING = frozenset({"rate_limit_exceeded", "server_error"})
_BEGUN = (b'"response.output', b'"response.reasoning', b'"response.completed', b'"response.incomplete')
"""Types of events of an answer that has begun; earlier events only confirm the request."""


def _has_begun(piece: bytes) -> bool:
    return piece.lstrip().startswith(b"{") or any(begun in piece for begun in _BEGUN)


class ResponsesModel:
    """A model on a server with the Responses interface, at `/responses`. Thread-safe, like `server`."""

    def __init__(self, server: OpenAIModel, *, reasons: bool = True) -> None:
        """A model that `reasons` gets no temperature. The server's deadlines have to allow for silence in the middle of
        an answer."""
        self._server = server
        self.name, self.price = server.name, server.price
        self._reasons = reasons
        self._stream = {"stream": True} if server.client.streams else {}

    def sampling(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """See `agent.models.Model`."""
        return self._server.sampling(parameters)

    def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """See `agent.models.Model`."""
        fields = without(self.sampling(sampling), *_UNSUPPORTED, *(["temperature"] if self._reasons else []))
        body = _request(self.name.removeprefix("openai/"), sendable(messages, self.name), tools, fields) | self._stream
        prompt = self._server.client.prompt(tools, messages)
        read = partial(_completion, model=self.name, price=self.price)
        return self._server.answer("/responses", body, read, prompt, Interface(_assemble, _has_begun))

    def close(self) -> None:
        """See `agent.models.Model`."""
        self._server.close()


def _request(
    name: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], fields: dict[str, Any]
) -> dict[str, Any]:
    """The body of a request to the model of this name. Fields have their names in the chat completions interface or in
    this one."""
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
            yield from _answer_items(message)
        case role:
            yield {"role": role, "content": message["content"]}


def _answer_items(message: Message) -> Iterator[dict[str, Any]]:
    """An answer's items, with the current arguments of its calls. An answer without items gets items made from its text
    and calls."""
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
    """The response in the last of these events; an `error` if they end without a response.

    Raises:
        AttributeError, KeyError, TypeError: an event is malformed.
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


def _completion(body: Any, model: str, price: Price | None) -> Completion:
    """Read a response into a Completion.

    Raises:
        Transient: it is malformed, or failed and may be retried.
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
        raise Transient(f"{model}: the answer is not a response: {error!r}", usage=spent) from error
    finish = cut_off.replace("max_output_tokens", "length") or ("tool_calls" if calls else "stop")
    message = signed({**Completion(text, calls).message, ITEMS: items}, model)
    return Completion(text, calls, spent, finish, message)


def _problem(reported: Mapping[str, Any], model: str, spent: Usage) -> RamifyError | Transient:
    code = str(reported.get("code") or "server_error")
    problem = fault(model, str(reported.get("message") or "the answer failed"), None if code in _PASSING else 400, code)
    problem.usage = spent
    return problem


def _kept(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item without its empty fields, which the provider refuses when they are sent back."""
    return {key: value for key, value in item.items() if value is not None}


def _words(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The text of the items, refusals included."""
    for item in items:
        for part in item["content"] if item["type"] == "message" else ():
            yield part.get("text") or part.get("refusal") or ""


def _counts(used: Mapping[str, Any] | None) -> dict[str, Any]:
    """The token counts under their names in the chat completions interface."""
    if not used:
        return {}
    return {
        "prompt_tokens": used.get("input_tokens"),
        "completion_tokens": used.get("output_tokens"),
        "prompt_tokens_details": used.get("input_tokens_details"),
    }
