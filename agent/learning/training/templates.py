"""Fits rows to a model's chat template: what one template renders, another refuses.

Mistral's template needs call ids of nine letters or digits; Llama's accepts only one call in an answer. Like `job`,
this module needs nothing of Ramify.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

LISTS = ("messages", "prompt", "completion", "chosen", "rejected")
"""Columns of messages."""
ID_CHARS = 9
_SHORT_IDS = re.compile(r"length\s*!=\s*9\b")
_SINGLE_CALLS = "single tool-call"


def fitted(rows: list[dict[str, Any]], template: str) -> list[dict[str, Any]]:
    """The rows in a form that the template accepts: unchanged if it restricts neither call ids nor the number of
    calls."""
    short, single = bool(_SHORT_IDS.search(template)), _SINGLE_CALLS in template

    def fit(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        messages = list(_one_call_each(messages)) if single else messages
        return [_with_short_ids(message) for message in messages] if short else messages

    if not (short or single):
        return rows
    return [{name: fit(value) if name in LISTS else value for name, value in row.items()} for row in rows]


def _with_short_ids(message: dict[str, Any]) -> dict[str, Any]:
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _short(message["tool_call_id"])}
    if message.get("tool_calls"):
        return {**message, "tool_calls": [{**call, "id": _short(call["id"])} for call in message["tool_calls"]]}
    return message


def _short(name: str) -> str:
    fits = len(name) == ID_CHARS and name.isascii() and name.isalnum()
    return name if fits else blake2b(name.encode()).hexdigest()[:ID_CHARS]


def _one_call_each(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages with each answer split into one answer per call, each followed by its result."""
    place = 0
    while place < len(messages):
        message, place = messages[place], place + 1
        calls, results = message.get("tool_calls") or [], list[dict[str, Any]]()
        if len(calls) < 2:
            yield message
            continue
        while place < len(messages) and messages[place]["role"] == "tool":
            results.append(messages[place])
            place += 1
        for number, call in enumerate(calls):
            yield {**message, "content": "" if number else message["content"], "tool_calls": [call]}
            yield from results[number : number + 1]
