"""Tool dialects: offer tools to a model, parse its answer into actions, and write calls and results as messages. Tools
are called natively through the provider's API, or as text in the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Protocol

from agent.actions import Action, BadCall, Invalid, View, as_call, invalid, parse, schema
from agent.actions.tools import is_object
from agent.models import Completion, Message, ToolCall
from agent.policy.chat import tagged
from agent.prompts import Prompts, render, used
from agent.untrusted import fence

_NAME = re.compile(r"[^\w-]", re.ASCII)
_TOO_LONG = "the answer was cut off because it was too long: take smaller steps"


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A model's answer, parsed into words and actions."""

    message: Message
    """The answer as it is sent back to the model."""
    text: str
    """Its words, without the calls."""
    actions: tuple[Action, ...] = ()
    """The calls in order. One that cannot be parsed is `agent.actions.Invalid`."""
    problems: tuple[str, ...] = ()
    """The problem of each call, if none can be carried out; otherwise empty."""

    @property
    def readable(self) -> bool:
        """Whether there is something to carry out."""
        return bool(self.actions) and not self.problems


class ToolDialect(Protocol):
    """How tools are offered to a model, and how calls and their results are written."""

    def tools(self, *, debug: bool = True) -> Sequence[Mapping[str, Any]]:
        """The tool schemas of a request, always the same bytes; `debug`: whether the debug tool is available."""
        ...

    def instructions(self, *, debug: bool = True) -> str:
        """How to call the tools, for the end of the system prompt."""
        ...

    def parse(self, answer: Completion) -> ParsedReply:
        """Parse an answer into words and actions."""
        ...

    def format_error(self, reply: ParsedReply, *, cut_off: bool) -> list[Message]:
        """The messages that send back an answer with nothing to carry out and say how to correct it."""
        ...

    def uses_dialect(self, message: Message) -> bool:
        """Whether a stored answer that calls tools does so in this dialect."""
        ...

    def render_turn(self, key: str, text: str, actions: Sequence[Action]) -> Message:
        """A turn of another dialect or policy, written in this dialect. Each turn needs its own `key`."""
        ...

    def results(self, message: Message, actions: Sequence[Action], results: Sequence[str]) -> list[Message]:
        """The messages that report the results of an answer's calls, one text per call."""
        ...

    def to_wire(self, messages: Sequence[Message]) -> list[Message]:
        """A conversation in the form that the provider accepts."""
        ...


class _Native:
    """The tool calls of the chat completions API."""

    def tools(self, *, debug: bool = True) -> Sequence[Mapping[str, Any]]:
        return schema(debug=debug)

    def instructions(self, *, debug: bool = True) -> str:
        return ""

    def parse(self, answer: Completion) -> ParsedReply:
        return _reply(as_server_accepts(answer.message), answer.text, _parsed(answer.tool_calls), answer)

    def format_error(self, reply: ParsedReply, *, cut_off: bool) -> list[Message]:
        if not reply.problems:
            return _corrected_in_words(reply, cut_off)
        problems = zip(reply.message["tool_calls"], reply.problems, strict=True)
        return [reply.message, *(_native_result(call, f"Not done: {problem}.") for call, problem in problems)]

    def uses_dialect(self, message: Message) -> bool:
        return "tool_calls" in message

    def render_turn(self, key: str, text: str, actions: Sequence[Action]) -> Message:
        calls = (ToolCall(f"call_{key}_{n}", *as_call(action)) for n, action in enumerate(actions))
        return Completion(text, tuple(calls)).message

    def results(self, message: Message, actions: Sequence[Action], results: Sequence[str]) -> list[Message]:
        return [_native_result(call, text) for call, text in zip(message["tool_calls"], results, strict=True)]

    def to_wire(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages)


class _Text:
    """Calls as tags in the model's text (`agent.policy.chat.tagged`), and their results in a user message."""

    def tools(self, *, debug: bool = True) -> Sequence[Mapping[str, Any]]:
        return ()

    def instructions(self, *, debug: bool = True) -> str:
        return _instructions(used(), debug)

    def parse(self, answer: Completion) -> ParsedReply:
        parts = tagged.read(answer.text)
        unread = [invalid(parts.unread, "", parts.problem)] if parts.problem else []
        message = {key: value for key, value in answer.message.items() if key != "tool_calls"}
        return _reply(message, parts.text, [*_parsed(parts.calls), *unread], answer)

    def format_error(self, reply: ParsedReply, *, cut_off: bool) -> list[Message]:
        return _corrected_in_words(reply, cut_off)

    def uses_dialect(self, message: Message) -> bool:
        return "tool_calls" not in message

    def render_turn(self, key: str, text: str, actions: Sequence[Action]) -> Message:
        return {"role": "assistant", "content": "\n\n".join(filter(None, (text, *map(_tagged, actions))))}

    def results(self, message: Message, actions: Sequence[Action], results: Sequence[str]) -> list[Message]:
        shown = [
            {"call": as_call(action)[0], "text": text, "fence": fence("result", text)}
            for action, text in zip(actions, results, strict=True)
        ]
        return [{"role": "user", "content": render("chat_results", results=shown)}]

    def to_wire(self, messages: Sequence[Message]) -> list[Message]:
        """Strictly alternating turns: the chat templates of many models without tool calls accept nothing else."""
        return [message for _, row in groupby(messages, lambda m: m["role"]) for message in _joined(list(row))]


NATIVE: ToolDialect = _Native()
TEXT: ToolDialect = _Text()


def as_server_accepts(message: Message) -> Message:
    """An answer in a form that servers accept back, its calls repaired where needed."""
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [_readable(call) for call in calls]} if calls else message


def _parsed(calls: Sequence[ToolCall]) -> list[Action]:
    """The action that each call asks for, or an `Invalid` with its problem."""
    actions = list[Action]()
    for call in calls:
        try:
            actions.append(parse(call.name, call.arguments))
        except BadCall as problem:
            actions.append(invalid(call.name, call.arguments, str(problem)))
    return actions


def _reply(message: Message, text: str, actions: Sequence[Action], answer: Completion) -> ParsedReply:
    """The parsed answer, given the actions that it asks for."""
    too_long = f"; {_TOO_LONG}" if answer.finish_reason == "length" else ""
    invalid_calls = [action for action in actions if isinstance(action, Invalid)]
    if len(invalid_calls) == len(actions):
        return ParsedReply(message, text, (), tuple(call.problem + too_long for call in invalid_calls))
    last = actions[-1]
    if isinstance(last, Invalid):
        actions = (*actions[:-1], replace(last, problem=last.problem + too_long))
    return ParsedReply(message, text, tuple(actions))


def _corrected_in_words(reply: ParsedReply, cut_off: bool) -> list[Message]:
    problem = next(iter(reply.problems), "")
    answer = {**reply.message, "content": reply.message.get("content") or "(nothing)"}
    return [answer, {"role": "user", "content": render("chat_mend", cut_off=cut_off, problem=problem)}]


def _native_result(call: Mapping[str, Any], text: str) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _readable(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call that servers accept: they refuse a conversation with arguments that are not a JSON object, or with a name
    that contains anything but letters, digits, `_` and `-`."""
    function = {**call["function"], "name": _NAME.sub("_", call["function"]["name"])[:64] or "_"}
    return {**call, "function": function if is_object(function["arguments"]) else {**function, "arguments": "{}"}}


@lru_cache(maxsize=8)
def _instructions(prompts: Prompts, debug: bool) -> str:
    example = "\n\n".join(map(_tagged, (View("src/app.py", 1, 40), View("tests"))))
    return prompts.render("chat_calls", example=example, tools=[tool["function"] for tool in schema(debug=debug)])


def _tagged(action: Action) -> str:
    name, arguments = as_call(action)
    return tagged.write(name, json.loads(arguments))


def _joined(row: Sequence[Message]) -> Iterator[Message]:
    """Merge the messages of one speaker into one. If there are several, only their texts are kept."""
    yield row[0] if len(row) == 1 else {"role": row[0]["role"], "content": "\n\n".join(str(m["content"]) for m in row)}
