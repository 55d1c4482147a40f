"""The secrets of this process's environment, taken out of whatever is shown or kept.

Law: a key is known to the client that sends it, and to nothing that is written.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator

__all__ = ["RedactingFormatter", "redacted", "redactor"]

SHORTEST = 8
"""A value with fewer characters is a placeholder, and would be found by chance in what is no secret."""
_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.I)


def redacted(text: str) -> str:
    """The text with the names of the environment's secrets in their place, as they are and as JSON writes them."""
    return redactor()(text)


def redactor() -> Callable[[str], str]:
    """What does so, for many texts: the environment is looked at once."""
    known = [(f"[{name}]", secret, json.dumps(secret)[1:-1]) for name, secret in _secrets()]

    def without(text: str) -> str:
        for name, *spelled in known:
            for secret in spelled:
                text = text.replace(secret, name)
        return text

    return without


def _secrets() -> Iterator[tuple[str, str]]:
    """Names and values, the longest first: one may be part of another. A variable may also say where a key is kept."""
    found = [(name, value) for name, value in os.environ.items() if len(value) >= SHORTEST and _NAME.search(name)]
    found.sort(key=lambda item: -len(item[1]))
    for name, value in found:
        if not (value.startswith("/") and os.path.exists(value)):  # noqa: PTH110  # a value may be no path at all
            yield name, value


class RedactingFormatter(logging.Formatter):
    """Formats a record of anybody's, libraries included, and its traceback, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return redacted(super().format(record))
