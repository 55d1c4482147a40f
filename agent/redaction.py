"""Removes the secrets of this process's environment from everything that is shown or stored.

Invariant: only the client that sends a key knows it; nothing that is written holds it.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator

SHORTEST = 8
"""Shorter values are placeholders, and would match ordinary text by chance."""
_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.I)


def redacted(text: str) -> str:
    """The text with each secret of the environment replaced by its name, as it is and as JSON writes it."""
    return redactor()(text)


def redactor() -> Callable[[str], str]:
    """`redacted` for many texts: the environment is read once."""
    secrets = [(f"[{name}]", secret, json.dumps(secret)[1:-1]) for name, secret in _secrets()]

    def without(text: str) -> str:
        for name, *spellings in secrets:
            for secret in spellings:
                text = text.replace(secret, name)
        return text

    return without


def _secrets() -> Iterator[tuple[str, str]]:
    """Names and values, the longest first: one may be part of another. A variable that names a file is no secret."""
    secrets = [(name, value) for name, value in os.environ.items() if len(value) >= SHORTEST and _NAME.search(name)]
    secrets.sort(key=lambda item: -len(item[1]))
    for name, value in secrets:
        if not (value.startswith("/") and os.path.exists(value)):  # noqa: PTH110  # a value may be no path at all
            yield name, value


class RedactingFormatter(logging.Formatter):
    """Formats log records and their tracebacks without secrets, those of libraries included."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return redacted(super().format(record))
