"""Parsing of untrusted data, with errors of one line."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any


@cache
def adapter(kind: Any, discriminator: str = "") -> Any:
    """Pydantic's adapter of a type, made at its first use; `discriminator` is the key that tells a union's members
    apart."""
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[kind, Field(discriminator=discriminator)] if discriminator else kind)


def loads(text: str | bytes, **numbers: Callable[[str], Any]) -> Any:
    """As `json.loads`; `numbers` are options such as `parse_int`. Raises ValueError, and nothing else, for text that it
    cannot read, even if it is nested too deeply for Python."""
    try:
        return json.loads(text, **numbers)  # type: ignore[arg-type]  # the names of its options are its own
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def python(source: str) -> ast.Module | None:
    """The syntax tree of a Python source; None where it is none, or is nested too deeply."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def reason(error: Exception) -> str:
    """The message of an error on one line; of a pydantic error, the part that says what is wrong and why."""
    return " ".join(str(error).partition("[type=")[0].split())[:200]
