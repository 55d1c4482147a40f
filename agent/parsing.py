"""Parses untrusted data, with one-line errors."""

from __future__ import annotations

import ast
import json
import threading
import warnings
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

_PARSING = threading.RLock()


@cache
def adapter(kind: Any, discriminator: str = "") -> Any:
    """Return pydantic's adapter of a type, which is made at its first use. `discriminator` is the key that tells a
    union's members apart."""
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[kind, Field(discriminator=discriminator)] if discriminator else kind)


def loads(text: str | bytes, **numbers: Callable[[str], Any]) -> Any:
    """As `json.loads`; `numbers` are options such as `parse_int`. Raises ValueError, and nothing else, for text that it
    cannot read, even if it is nested too deeply for Python."""
    try:
        return json.loads(text, **numbers)  # type: ignore[arg-type]  # the names of its options are its own
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def syntax_tree(source: str | bytes) -> ast.Module:
    """As `ast.parse`, in one thread at a time. Python 3.11 counts the depth of all trees that are being built together,
    so that `ast.parse` fails with a SystemError if a finalizer lets another thread parse as well.

    Raises:
        SyntaxError, ValueError: it is not Python.
        RecursionError, MemoryError: it is nested too deeply.
    """
    with _PARSING:
        return ast.parse(source)


def expression_tree(source: str) -> ast.expr:
    """The syntax tree of a Python expression. Raises as `syntax_tree`."""
    with _PARSING:
        return ast.parse(source, mode="eval").body


def literal(text: str) -> Any:
    """Return the value of a Python literal. Raises ValueError, and nothing else, for other text."""
    try:
        return ast.literal_eval(expression_tree(text.strip()))
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError("it is not a literal") from error


def python(source: str) -> ast.Module | None:
    """Return the syntax tree of a Python source; None if it is not valid Python, or is nested too deeply."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return syntax_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def first_line(definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """Return the 1-based line on which a function or class begins, decorators included."""
    return min([definition.lineno, *(decorator.lineno for decorator in definition.decorator_list)])


def reason(error: Exception) -> str:
    """Return the message of an error on one line; for a pydantic error, the part that says what is wrong and why."""
    return " ".join(str(error).partition("[type=")[0].split())[:200]
