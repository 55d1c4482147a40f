"""Log parsers that a pattern of a line makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from agent.measure import Outcome

__all__ = ["WORDS", "Ends", "by_line"]

Ends = Iterator[tuple[str, Outcome]]

WORDS: Mapping[str, Outcome] = {
    **dict.fromkeys(("ok", "OK", "pass", "passed", "Passed", "PASS", "PASSED", ".", "✓", "✔"), Outcome.PASSED),
    **dict.fromkeys(("skip", "skipped", "SKIP", "SKIPPED", "O", "○", "↓", "↩"), Outcome.SKIPPED),
}
"""How runners say that a test has passed, and that it was skipped."""


def by_line(pattern: str) -> Callable[[str], Ends]:
    """The parser of lines that the pattern fits, whole and without the space around them: its groups are `test` and
    `end`. An end that is none of `WORDS` is a failure."""
    return partial(_read, re.compile(pattern))


def _read(pattern: re.Pattern[str], text: str) -> Ends:
    for line in text.split("\n"):
        if match := pattern.fullmatch(line.strip()):
            yield match["test"], WORDS.get(match["end"], Outcome.FAILED)
