"""The two forms in which a model calls tools: its provider's own, and text for models that have none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, Protocol

from agent.actions import Action, BadCall, View, as_call, parse, schema
from agent.models import Completion, Message, ToolCall
from agent.policy import tagged
from agent.prompts import render
from agent.untrusted import fence

__all__ = ["NATIVE", "TEXT", "Form", "Heard"]


@dataclass(frozen=True, slots=True)
class Heard:
    """What an answer says and asks for."""

    message: Message
    """The answer as it has to be sent back."""
    said: str
    """Its words, without the calls."""
    actions: tuple[Action, ...] = ()
    problems: tuple[str, ...] = ()
    """Why calls cannot be read; with none, all can. In the native form there is one a call, empty where it is fine."""

    @property
    def readable(self) -> bool:
        """Whether there is something to carry out, and nothing else."""
        return bool(self.actions) and not any(self.problems)


class Form(Protocol):
    """How tools are offered to a model, and its calls and their results written down."""

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """What a request offers; always the same bytes."""
        ...

    def manual(self) -> str:
        """How to call the tools, for the end of the system prompt."""
        ...

    def hear(self, answer: Completion) -> Heard:
        """Read an answer."""
        ...

    def mend(self, heard: Heard, *, cut_off: bool) -> list[Message]:
        """An unreadable answer and how to mend it. None of its calls is carried out."""
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

    def tools(self) -> Sequence[Mapping[str, Any]]:
        return schema()

    def manual(self) -> str:
        return ""

    def hear(self, answer: Completion) -> Heard:
        actions, problems = _parsed(answer.tool_calls)
        return Heard(answer.message, answer.text, actions, problems)

    def mend(self, heard: Heard, *, cut_off: bool) -> list[Message]:
        if not heard.problems:
            return _mended_in_words(heard, cut_off)
        calls = [_readable(call) for call in heard.message["tool_calls"]]
        hint = " Your answer was cut off because it was too long: take smaller steps." if cut_off else ""
        why = (each or "not carried out, because another call of this answer cannot be read" for each in heard.problems)
        results = (_native_result(call, f"Error: {each}.{hint}") for call, each in zip(calls, why, strict=True))
        return [{**heard.message, "tool_calls": calls}, *results]

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
    """Calls in tags (`agent.policy.tagged`) in what the model says, and their results in what it is told."""

    def tools(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def manual(self) -> str:
        return _manual()

    def hear(self, answer: Completion) -> Heard:
        found = tagged.read(answer.text, schema())
        actions, problems = _parsed(found.calls)
        problems = tuple(filter(None, (*problems, found.problem)))
        message = {key: value for key, value in answer.message.items() if key != "tool_calls"}
        return Heard(message, found.said, actions, problems)

    def mend(self, heard: Heard, *, cut_off: bool) -> list[Message]:
        return _mended_in_words(heard, cut_off)

    def written(self, message: Message) -> bool:
        return "tool_calls" not in message

    def say(self, key: str, said: str, actions: Sequence[Action]) -> Message:
        return {"role": "assistant", "content": "\n\n".join(filter(None, (said, *map(_tagged, actions))))}

    def results(self, message: Message, actions: Sequence[Action], seen: Sequence[str]) -> list[Message]:
        results = [
            {"call": action.kind, "text": text, "fence": fence("result", text)}
            for action, text in zip(actions, seen, strict=True)
        ]
        return [{"role": "user", "content": render("chat_results", results=results)}]

    def sent(self, messages: Sequence[Message]) -> list[Message]:
        """Turns strictly alternate: the templates of many models without tool calls take nothing else."""
        return [message for _, row in groupby(messages, lambda m: m["role"]) for message in _joined(list(row))]


NATIVE: Form = _Native()
TEXT: Form = _Text()


def _parsed(calls: Sequence[ToolCall]) -> tuple[tuple[Action, ...], tuple[str, ...]]:
    """The actions that can be read, and of each call what is wrong with it (empty: nothing)."""
    actions, problems = list[Action](), list[str]()
    for call in calls:
        try:
            actions.append(parse(call.name, call.arguments))
            problems.append("")
        except BadCall as problem:
            problems.append(str(problem))
    return tuple(actions), tuple(problems)


def _mended_in_words(heard: Heard, cut_off: bool) -> list[Message]:
    problem = next(filter(None, heard.problems), "")
    said = {**heard.message, "content": heard.message.get("content") or "(nothing)"}
    return [said, {"role": "user", "content": render("chat_mend", cut_off=cut_off, problem=problem)}]


def _native_result(call: Mapping[str, Any], text: str) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def _readable(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call that servers accept: they refuse a conversation in which arguments are not a JSON object."""
    function = call["function"]
    try:
        fine = isinstance(json.loads(function["arguments"]), dict)
    except (ValueError, RecursionError):
        fine = False
    return dict(call) if fine else {**call, "function": {**function, "arguments": "{}"}}


@cache
def _manual() -> str:
    example = "\n\n".join(map(_tagged, (View("src/app.py", 1, 40), View("tests"))))
    return render("chat_calls", example=example, tools=[tool["function"] for tool in schema()])


def _tagged(action: Action) -> str:
    name, arguments = as_call(action)
    return tagged.write(name, json.loads(arguments))


def _joined(row: Sequence[Message]) -> Iterator[Message]:
    """One message of a row by the same speaker."""
    yield row[0] if len(row) == 1 else {**row[0], "content": "\n\n".join(str(m["content"]) for m in row)}
