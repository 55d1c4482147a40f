"""Log parsers made from a pattern for one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from agent.measure import Outcome

Ends = Iterator[tuple[str, Outcome]]

WORDS: Mapping[str, Outcome] = {
    **dict.fromkeys(("ok", "OK", "pass", "passed", "Passed", "PASS", "PASSED", ".", "✓", "✔"), Outcome.PASSED),
    **dict.fromkeys(("skip", "skipped", "SKIP", "SKIPPED", "O", "○", "↓", "↩"), Outcome.SKIPPED),
}
"""Words for a passed test, and for a skipped one."""


def by_line(pattern: str) -> Callable[[str], Ends]:
    """A parser of lines that match the whole pattern, stripped; its groups are `test` and `end`. An end that is not in
    `WORDS` is a failure."""
    return partial(_read, re.compile(pattern))


def _read(pattern: re.Pattern[str], text: str) -> Ends:
    for line in text.split("\n"):
        if match := pattern.fullmatch(line.strip()):
            yield match["test"], WORDS.get(match["end"], Outcome.FAILED)
