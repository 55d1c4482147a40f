"""Writes and reads tool calls as text without loss, for models that have no native tool calls.

    <function=edit>
    <parameter=path>
    a.py
    </parameter>
    </function>

A value is written as it is, with nothing escaped; one line break after the opening tag and one before the closing tag
are not part of it. A value that contains `</parameter>` is written between `<parameter=NAME:MARK>` and
`</parameter:MARK>`. Apart from the mark, this is the form of Qwen3-Coder and of SWE-smith's fine-tuning data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from agent.models import ToolCall

_CALL = re.compile(r"^[ \t]*<function=([^\s<>=]+)>", re.M)
_PARAMETER = re.compile(r"\s*<parameter=([^\s<>=:]+)(:[^\s<>]+)?>\n?")
_END = re.compile(r"\s*</function>")


@dataclass(frozen=True, slots=True)
class Read:
    """An answer, split into words and calls."""

    text: str
    """The words outside of calls."""
    calls: tuple[ToolCall, ...] = ()
    problem: str = ""
    """Why the rest of the text, from a bad call on, cannot be read; empty if all of it was read."""
    unread: str = ""
    """The tool that the bad call names."""


class _Unreadable(Exception):
    """The problem with a call, for the model."""


def write(name: str, arguments: Mapping[str, Any]) -> str:
    """A call in the form that `read` parses. Values other than strings are written as JSON."""
    parameters = (_parameter(key, value) for key, value in arguments.items())
    return "\n".join([f"<function={name}>", *parameters, "</function>"])


def read(text: str) -> Read:
    """The calls of an answer in order; never raises. Every value is a string: neither the meaning of a call nor the
    types of its values are checked."""
    words, calls, at = list[str](), list[ToolCall](), 0
    while (opening := _CALL.search(text, at)) is not None:
        words.append(text[at : opening.start()])
        name = opening[1]
        try:
            arguments, at = _arguments(name, text, opening.end())
        except _Unreadable as problem:
            return Read(_joined(words), tuple(calls), str(problem), name)
        calls.append(ToolCall(f"call_{len(calls)}", name, json.dumps(arguments)))
    return Read(_joined([*words, text[at:]]), tuple(calls))


def _parameter(key: str, value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    marks = (f":{number}" if number else "" for number in count())
    mark = next(mark for mark in marks if f"</parameter{mark}>" not in text)
    return f"<parameter={key}{mark}>\n{text}\n</parameter{mark}>"


def _arguments(name: str, text: str, at: int) -> tuple[dict[str, str], int]:
    """The values of the call whose opening tag ends at `at`, and where the call ends."""
    values: dict[str, str] = {}
    while (end := _END.match(text, at)) is None:
        key, value, at = _value(name, text, at)
        if key in values:
            raise _Unreadable(f"{name[:40]} has the parameter {key[:40]!r} twice")
        values[key] = value
    return values, end.end()


def _value(name: str, text: str, at: int) -> tuple[str, str, int]:
    """The name and the value of the parameter that begins at `at`, and where it ends."""
    opening = _PARAMETER.match(text, at)
    if opening is None:
        rest = repr(text[at : at + 40].strip()) if text[at:].strip() else "the end of the answer"
        raise _Unreadable(
            f"in the call of {name[:40]}, <parameter=NAME> or </function> has to follow, not {rest}; where a value "
            "holds </parameter> itself, open it with <parameter=NAME:1> and close it with </parameter:1>"
        )
    key, mark = opening[1], opening[2] or ""
    closing = f"</parameter{mark}>"
    end = text.find(closing, opening.end())
    if end < 0:
        raise _Unreadable(f"the parameter {key[:40]!r} of {name[:40]} is not closed with {closing[:80]}")
    return key, text[opening.end() : end].removesuffix("\n"), end + len(closing)


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(words for part in parts if (words := part.strip()))
