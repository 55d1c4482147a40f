"""Removes the secrets of this process's environment from everything that is shown or stored.

Invariant: only the client that sends a key knows it; nothing that is written contains it.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator

SHORTEST = 8
"""The minimum length of a secret. Shorter values are placeholders, and would match ordinary text by chance."""
_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.I)


def redacted(text: str) -> str:
    """Replace each secret of the environment by its name, both as it is and as JSON writes it."""
    return redactor()(text)


def redactor() -> Callable[[str], str]:
    """Return a function like `redacted` for many texts, for which the environment is read only once."""
    secrets = [(f"[{name}]", secret, json.dumps(secret)[1:-1]) for name, secret in _secrets()]

    def without(text: str) -> str:
        for name, *spellings in secrets:
            for secret in spellings:
                text = text.replace(secret, name)
        return text

    return without


def _secrets() -> Iterator[tuple[str, str]]:
    """Yield names and values, the longest value first, since one may be part of another. A variable that names a file
    is not a secret."""
    secrets = [(name, value) for name, value in os.environ.items() if len(value) >= SHORTEST and _NAME.search(name)]
    secrets.sort(key=lambda item: -len(item[1]))
    for name, value in secrets:
        if not (value.startswith("/") and os.path.exists(value)):  # noqa: PTH110  # a value may not be a path at all
            yield name, value


class RedactingFormatter(logging.Formatter):
    """Formats log records and their tracebacks without secrets, those of libraries included."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return redacted(super().format(record))
