"""What mocha's `json` reporter prints, amid the other output of a command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agent.measure import Outcome

BEGINS = re.compile(r'\{\s*"stats"\s*:')
LISTS = {"passes": Outcome.PASSED, "pending": Outcome.SKIPPED, "failures": Outcome.FAILED}
"""For a test in several lists the last one counts."""
REPORTS = 100
"""Further reports are ignored: each start costs a scan of the rest of the text."""


def titles(text: str) -> Iterator[tuple[str, Outcome]]:
    """The test's full title."""
    for test, outcome in _tests(text):
        yield test["fullTitle"], outcome


def as_written(text: str) -> Iterator[tuple[str, Outcome]]:
    """The test's full title as JSON writes it, without the quotes."""
    for test, outcome in titles(text):
        yield json.dumps(test, ensure_ascii=False)[1:-1], outcome


def in_files(text: str) -> Iterator[tuple[str, Outcome]]:
    """`file:full title`."""
    for test, outcome in _tests(text):
        yield f"{test.get('file')}:{test['fullTitle']}", outcome


def _tests(text: str) -> Iterator[tuple[dict[str, Any], Outcome]]:
    for report in _reports(text):
        for name, outcome in LISTS.items():
            listed = report.get(name)
            for test in listed if isinstance(listed, list) else ():
                if isinstance(test, dict) and isinstance(test.get("fullTitle"), str):
                    yield test, outcome


def _reports(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    for begin in list(BEGINS.finditer(text))[:REPORTS]:
        try:
            found, _ = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found
