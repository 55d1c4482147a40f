"""The Test Anything Protocol, as node's own runner, tape, ava and others print it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.measure import Outcome
from agent.measure.logs.lines import by_line

__all__ = ["tap", "whole"]

LINE = re.compile(r"\s*(ok|not ok)\s+\d+(?:\s+-)?\s*(.*?)(?:\s+# (SKIP|TODO)\b.*)?", re.IGNORECASE)

whole = by_line(r"(?P<end>ok|not ok) \d+ (?P<test>.+)")
"""All that follows the number, directives and a hyphen too, as SWE-bench names the tests of such a log."""


def tap(text: str) -> Iterator[tuple[str, Outcome]]:
    """The description after the number; tests without one are not told."""
    for line in text.split("\n"):
        match = LINE.fullmatch(line.rstrip())
        if match and match[2]:
            yield match[2], _outcome(match[1].lower(), (match[3] or "").upper())


def _outcome(said: str, directive: str) -> Outcome:
    """A test that is to be done is expected to fail, and a failure of it is none."""
    if directive == "SKIP" or (directive == "TODO" and said == "not ok"):
        return Outcome.SKIPPED
    return Outcome.PASSED if said == "ok" else Outcome.FAILED
