"""Whether a change made a Python file unreadable to Python."""

from __future__ import annotations

import ast
import warnings

__all__ = ["broken"]


def broken(path: str, before: str | None, after: str) -> str:
    """What to say of a Python file that could be parsed before, or did not exist, and cannot be parsed now; empty
    otherwise. It is this program's own version of Python that parses."""
    problem = _problem(after) if path.endswith(".py") else ""
    if not problem or (before is not None and _problem(before)):
        return ""
    return f"{path} does not parse now: {problem}"


def _problem(text: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text.encode("utf-8", "surrogateescape"))
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else str(error.msg)
    except (ValueError, MemoryError, RecursionError) as error:  # NUL characters, or too deeply nested
        return str(error) or "it is nested too deeply"
    return ""
