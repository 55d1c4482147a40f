"""The Test Anything Protocol, as node's own runner, tape, ava and others print it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.measure import Outcome
from agent.measure.logs.lines import by_line

LINE = re.compile(r"\s*(ok|not ok)\s+\d+(?:\s+-)?\s*(.*?)(?:\s+# (SKIP|TODO)\b.*)?", re.IGNORECASE)

whole = by_line(r"(?P<end>ok|not ok) \d+ (?P<test>.+)")
"""The whole text after the number, with directives and hyphen, as SWE-bench names the tests of such a log."""


def tap(text: str) -> Iterator[tuple[str, Outcome]]:
    """The description after the number; tests without one are ignored."""
    for line in text.split("\n"):
        match = LINE.fullmatch(line.rstrip())
        if match and match[2]:
            yield match[2], _outcome(match[1].lower(), (match[3] or "").upper())


def _outcome(status: str, directive: str) -> Outcome:
    """A TODO test is expected to fail, so its failure counts as skipped."""
    if directive == "SKIP" or (directive == "TODO" and status == "not ok"):
        return Outcome.SKIPPED
    return Outcome.PASSED if status == "ok" else Outcome.FAILED
