"""Read the failure message of a test, whichever runner wrote it."""

from __future__ import annotations

import re

from agent.untrusted import terminal_text

ERROR_CHARS = 300
"""Length limit of an error line."""

_RAISED = re.compile(r"(?:^E(?:[ \t].*)?(?:\n|\Z))+", re.MULTILINE)
"""An exception as pytest marks it. If there are several, the one that ended the test is last."""
_NAMED = re.compile(r"^[\w.]*(?:Error|Exception|Warning|Exit|Interrupt|panic)\b.*$", re.MULTILINE)
_MISSING = re.compile(r"\bModuleNotFoundError: No module named '(\w+)'")
INSTALL = (
    'install it in the sandbox with --setup "pip install PACKAGE", or "pip install -e ." if it is the project itself, '
    "or name an environment that has it with --python DIR"
)
"""The remedy for a package that is missing."""
OWN_COPY = (
    'install the checkout with --setup "pip install -e .", or begin the test command with PYTHONPATH=src (the folder '
    "that has the package)"
)
"""The remedy for tests that import an installed copy of the project."""
_PLACE = re.compile(r"^\s*(?:File \")?([^\s:\"]+\.py)(?::|\", line )(\d+)", re.MULTILINE)


def error_of(message: str) -> str:
    """Return the line that says what went wrong; empty for an empty message."""
    return next(iter(raised(message)), "")[:ERROR_CHARS]


def raised(message: str) -> list[str]:
    """Return the lines of the error that ended the test, without blank lines and the calls that led to it. The message
    may contain a traceback of Python or of pytest."""
    text = terminal_text(message)
    if marked := _RAISED.findall(text):
        lines = [line.removeprefix("E") for line in marked[-1].splitlines()]
    elif named := list(_NAMED.finditer(text)):
        lines = text[named[-1].start() :].splitlines()
    else:
        lines = text.strip().splitlines()[-1:]
    return [line.strip() for line in lines if line.strip()]


def missing_package(message: str) -> str:
    """Return the package that could not be imported; empty if the error is a different one."""
    found = _MISSING.search(error_of(message))
    return found[1] if found else ""


def places_of(message: str) -> list[tuple[str, int]]:
    """Return the Python files and lines of a traceback, in order; the failure is at the last one."""
    return [(path, int(line)) for path, line in _PLACE.findall(message)]
