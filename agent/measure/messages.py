"""Reads the messages of failed tests, whichever runner wrote them."""

from __future__ import annotations

import re

from agent.untrusted import terminal_text

__all__ = ["error_of", "places_of"]

ERROR_CHARS = 300
"""The most characters of the line that says what went wrong."""

_RAISED = re.compile(r"(?:^E[ \t].*\n?)+", re.MULTILINE)
"""As pytest marks it, where there are several exceptions the one that ended the test last."""
_NAMED = re.compile(r"^[\w.]*(?:Error|Exception|Warning|Exit|Interrupt|panic)\b.*$", re.MULTILINE)
_PLACE = re.compile(r"^\s*(?:File \")?([^\s:\"]+\.py)(?::|\", line )(\d+)", re.MULTILINE)


def error_of(message: str) -> str:
    """The line that says what went wrong; empty for an empty message."""
    text = terminal_text(message)
    marked = [block.removeprefix("E") for block in _RAISED.findall(text)[-1:]]
    lines = marked or _NAMED.findall(text)[-1:] or text.strip().splitlines()[-1:]
    return str(lines[0]).strip().partition("\n")[0][:ERROR_CHARS] if lines else ""


def places_of(message: str) -> list[tuple[str, int]]:
    """The Python files and lines that a failure came through; the last is where it was raised."""
    return [(path, int(line)) for path, line in _PLACE.findall(message)]
