"""Rows in the form of OpenAI's fine-tuning files, an interchange format. Its readers refuse unknown columns, so the
provenance of rows is in separate files."""

from __future__ import annotations

from typing import Any

from agent.learning.export import Row
from agent.learning.export.turns import as_sent
from agent.models import Message

_KNOWN = ("role", "content", "name", "tool_calls", "tool_call_id")


def conversation(row: Row) -> Row:
    """Convert a row of `sft`; `weight` is 0 if the loss is off."""
    return {**_input(row["messages"], row["tools"]), "provenance": row["provenance"]}


def pair(row: Row) -> Row:
    """Convert a row of `preference`."""
    return {
        "input": _input(row["prompt"], row["tools"]),
        "preferred_output": [_message(message) for message in row["chosen"]],
        "non_preferred_output": [_message(message) for message in row["rejected"]],
        "provenance": row["provenance"],
    }


def _input(messages: list[Message], tools: list[Any]) -> Row:
    offered = {"tools": tools, "parallel_tool_calls": True} if tools else {}
    return {"messages": [_message(message) for message in messages], **offered}


def _message(message: Message) -> dict[str, Any]:
    """The message with the known keys, and call arguments as text."""
    kept = {key: message[key] for key in _KNOWN if key in message}
    return as_sent(kept) | ({"weight": 0} if message.get("train") is False else {})
