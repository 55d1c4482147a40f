"""Parsing of untrusted data, with errors of one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["loads", "reason"]


def loads(text: str | bytes, **numbers: Callable[[str], Any]) -> Any:
    """As `json.loads`; `numbers` are its `parse_int` and the like. Raises ValueError, and nothing else, for whatever it
    cannot read: also where it is nested so deeply that Python gives up."""
    try:
        return json.loads(text, **numbers)  # type: ignore[arg-type]  # the names of its options are its own
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def reason(error: Exception) -> str:
    """Why something is refused, on one line. Of the lines of an error of pydantic the first ones say what and why."""
    return " ".join(str(error).partition("[type=")[0].split())[:200]
