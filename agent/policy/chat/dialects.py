"""The two forms in which a model calls tools: its provider's own, and text for models that have none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Protocol

from agent.actions import Action, BadCall, Invalid, View, as_call, invalid, parse, schema
from agent.models import Completion, Message, ToolCall
from agent.policy.chat import tagged
from agent.prompts import Prompts, render, used
from agent.untrusted import fence

__all__ = ["NATIVE", "TEXT", "ParsedReply", "ToolDialect", "accepted"]

_NAME = re.compile(r"[^\w-]", re.ASCII)
_TOO_LONG = "the answer was cut off because it was too long: take smaller steps"


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What an answer says and asks for."""

    message: Message
    """The answer as it has to be sent back."""
    said: str
    """Its words, without the calls."""
    actions: tuple[Action, ...] = ()
    """In the order of the calls. One that cannot be read is `agent.actions.Invalid`."""
    problems: tuple[str, ...] = ()
    """Why none of the calls is carried out, one for each; empty where there is something to carry out, or no call."""

    @property
    def readable(self) -> bool:
        """Whether there is something to carry out."""
        return bool(self.actions) and not self.problems


class ToolDialect(Protocol):
    """How tools are offered to a model, and its calls and their results written down."""

    def tools(self, *, debug: bool = True) -> Sequence[Mapping[str, Any]]:
        """What a request offers, always the same bytes; `debug`: whether a run of a test can be watched here."""
        ...

    def manual(self, *, debug: bool = True) -> str:
        """How to call the tools, for the end of the system prompt."""
        ...

    def hear(self, answer: Completion) -> ParsedReply:
        """Read an answer."""
        ...

    def mend(self, heard: ParsedReply, *, cut_off: bool) -> list[Message]:
        """An answer of which nothing is carried out, and how to correct it."""
        ...

    def written(self, message: Message) -> bool:
        """Whether a stored answer that calls tools does it in this form."""
        ...

    def say(self, key: str, said: str, actions: Sequence[Action]) -> Message:
        """A turn that was not taken in this form, as if it had been. No two turns have the same `key`."""
        ...

    def results(self, message: Message, actions: Sequence[Action], seen: Sequence[str]) -> list[Message]:
        """What the calls of an answer did, one text each."""
        ...

    def sent(self, messages: Sequence[Message]) -> list[Message]:
        """A conversation as the provider takes it."""
        ...


class _Native:
    """The tool calls of the chat completions interface."""

    def tools(self, *, debug: bool = True) -> Sequence[Mapping[str, Any]]:
        return schema(debug=debug)

    def manual(self, *, debug: bool = True) -> str:
        return ""

    def hear(self, answer: Completion) -> ParsedReply:
        return _heard(accepted(answer.message), answer.text, _parsed(answer.tool_calls), _cut_off(answer))

    def mend(self, heard: ParsedReply, *, cut_off: bool) -> list[Message]:
        if not heard.problems:
            return _corrected_in_words(heard, cut_off)
        calls = heard.message["tool_calls"]
        results = (_native_result(call, f"Not done: {why}.") for call, why in zip(calls, heard.problems, strict=True))
        return [heard.message, *results]

    def written(self, message: Message) -> bool:
        return "tool_calls" in message

    def say(self, key: str, said: str, actions: Sequence[Action]) -> Message:
        calls = (ToolCall(f"call_{key}_{n}", *as_call(action)) for n, action in enumerate(actions))
        return Completion(said, tuple(calls)).message

    def results(self, message: Message, actions: Sequence[Action], seen: Sequence[str]) -> list[Message]:
        return [_native_result(call, text) for call, text in zip(message["tool_calls"], seen, strict=True)]

    def sent(self, messages: Sequence[Message]) -> list[Message]:
        return list(messages)


class _Text:
    """Calls in tags (`agent.policy.chat.tagged`) in what the model says, and their results in what it is told."""

    def tools(self, *, debug: bool = True) -> Sequence[Mapping[str, Any]]:
        return ()

    def manual(self, *, debug: bool = True) -> str:
        return _manual(used(), debug)

    def hear(self, answer: Completion) -> ParsedReply:
        found = tagged.read(answer.text)
        unread = [invalid(found.unread, "", found.problem)] if found.problem else []
        message = {key: value for key, value in answer.message.items() if key != "tool_calls"}
        return _heard(message, found.said, [*_parsed(found.calls), *unread], _cut_off(answer))

    def mend(self, heard: ParsedReply, *, cut_off: bool) -> list[Message]:
        return _corrected_in_words(heard, cut_off)

    def written(self, message: Message) -> bool:
        return "tool_calls" not in message

    def say(self, key: str, said: str, actions: Sequence[Action]) -> Message:
        return {"role": "assistant", "content": "\n\n".join(filter(None, (said, *map(_tagged, actions))))}

    def results(self, message: Message, actions: Sequence[Action], seen: Sequence[str]) -> list[Message]:
        results = [
            {"call": as_call(action)[0], "text": text, "fence": fence("result", text)}
            for action, text in zip(actions, seen, strict=True)
        ]
        return [{"role": "user", "content": render("chat_results", results=results)}]

    def sent(self, messages: Sequence[Message]) -> list[Message]:
        """Turns strictly alternate: the templates of many models without tool calls take nothing else."""
        return [message for _, row in groupby(messages, lambda m: m["role"]) for message in _joined(list(row))]


NATIVE: ToolDialect = _Native()
TEXT: ToolDialect = _Text()


def accepted(message: Message) -> Message:
    """An answer as servers take it back: with calls that they can read."""
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [_readable(call) for call in calls]} if calls else message


def _parsed(calls: Sequence[ToolCall]) -> list[Action]:
    """The action that each call asks for, or what is wrong with it."""
    actions = list[Action]()
    for call in calls:
        try:
            actions.append(parse(call.name, call.arguments))
        except BadCall as problem:
            actions.append(invalid(call.name, call.arguments, str(problem)))
    return actions


def _heard(message: Message, said: str, actions: Sequence[Action], cut_off: bool) -> ParsedReply:
    """An answer that asks for these actions."""
    bad = [action for action in actions if isinstance(action, Invalid)]
    if len(bad) == len(actions):
        return ParsedReply(message, said, (), tuple(_why(each, cut_off) for each in bad))
    last = actions[-1]
    if cut_off and isinstance(last, Invalid):
        actions = (*actions[:-1], replace(last, problem=_why(last, cut_off)))
    return ParsedReply(message, said, tuple(actions))


def _why(bad: Invalid, cut_off: bool) -> str:
    return f"{bad.problem}; {_TOO_LONG}" if cut_off else bad.problem


def _cut_off(answer: Completion) -> bool:
    return answer.finish_reason == "length"


def _corrected_in_words(heard: ParsedReply, cut_off: bool) -> list[Message]:
    problem = next(iter(heard.problems), "")
    said = {**heard.message, "content": heard.message.get("content") or "(nothing)"}
    return [said, {"role": "user", "content": render("chat_mend", cut_off=cut_off, problem=problem)}]


def _native_result(call: Mapping[str, Any], text: str) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _readable(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call that servers accept: they refuse a conversation in which arguments are not a JSON object, or in which a
    name holds other characters than letters, digits, `_` and `-`."""
    function = {**call["function"], "name": _NAME.sub("_", call["function"]["name"])[:64] or "_"}
    try:
        fine = isinstance(json.loads(function["arguments"]), dict)
    except (ValueError, RecursionError):
        fine = False
    return {**call, "function": function if fine else {**function, "arguments": "{}"}}


@lru_cache(maxsize=8)
def _manual(prompts: Prompts, debug: bool) -> str:
    example = "\n\n".join(map(_tagged, (View("src/app.py", 1, 40), View("tests"))))
    return prompts.render("chat_calls", example=example, tools=[tool["function"] for tool in schema(debug=debug)])


def _tagged(action: Action) -> str:
    name, arguments = as_call(action)
    return tagged.write(name, json.loads(arguments))


def _joined(row: Sequence[Message]) -> Iterator[Message]:
    """One message of a row by the same speaker; several are their words and nothing else."""
    yield row[0] if len(row) == 1 else {"role": row[0]["role"], "content": "\n\n".join(str(m["content"]) for m in row)}
