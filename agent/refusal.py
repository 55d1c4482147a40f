"""Errors about wrong settings. They name the key, the value, and the nearest existing key."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent.errors import ConfigError, OptionRefused

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

COMMAND_LINE = "the command line"
"""The origin of command-line options."""


def refusal(problem: ErrorDetails, section: type[BaseModel], origin: str = "") -> ConfigError | OptionRefused:
    """Return the error for a wrong key or value of a section of the settings. `origin` is where it comes from, if that
    is known."""
    key = ".".join(map(str, problem["loc"]))
    place = f" in {origin}" if origin else ""
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return ConfigError(f"unknown setting `{key}`{place}; did you mean `{_nearest(key, section)}`?")
    reason = problem["msg"].removeprefix("Input ")
    if problem["type"] in ("tuple_type", "list_type") and isinstance(problem["input"], str):
        text = problem["input"]
        reason = f"should be a list, such as [{text if re.fullmatch(r'[-.,0-9 ]+', text) else json.dumps(text)}]"
    if origin == COMMAND_LINE:
        return OptionRefused(key, problem["input"], reason)
    return ConfigError(f"`{key}`{place} is {problem['input']!r}, but {reason}")


def _nearest(key: str, section: type[BaseModel]) -> str:
    def likeness(candidate: str) -> float:
        pairs = ((key, candidate), (key.rpartition(".")[2], candidate.rpartition(".")[2]))
        return max(difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)

    return max((*section.model_fields, *_keys(section.model_construct().model_dump())), key=likeness)


def _keys(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """The dotted keys of all values in a table; the options of an implementation do not count."""
    for key, value in table.items():
        if isinstance(value, dict) and value and "options" not in value:
            yield from _keys(value, f"{before}{key}.")
        else:
            yield before + key
