"""Log parsers made from a pattern for one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from agent.measure import Outcome

Ends = Iterator[tuple[str, Outcome]]

_PASSED = ("ok", "OK", "pass", "passed", "Passed", "PASS", "PASSED", "SUCCESS", ".", "✓", "✔", "√")
_SKIPPED = ("skip", "skipped", "SKIP", "SKIPPED", "ignore", "ignored", "O", "○", "✎", "↓", "↩", "□", "﹣")
_WORDS: Mapping[str, Outcome] = {
    **dict.fromkeys(_PASSED, Outcome.PASSED),
    **dict.fromkeys(_SKIPPED, Outcome.SKIPPED),
    **dict.fromkeys(("ERR", "ERROR"), Outcome.ERROR),
}


def outcome_of(word: str) -> Outcome:
    """The outcome that a runner's word or mark stands for. An unknown one is a failure."""
    return _WORDS.get(word, Outcome.FAILED)


def by_line(pattern: str) -> Callable[[str], Ends]:
    """Make a parser of lines that, stripped, match the whole pattern. Its groups are `test`, and `end` for the word
    that stands for the outcome."""
    return partial(_read, re.compile(pattern))


def _read(pattern: re.Pattern[str], text: str) -> Ends:
    for line in text.split("\n"):
        if match := pattern.fullmatch(line.strip()):
            yield match["test"], outcome_of(match["end"])
