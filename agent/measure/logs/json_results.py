"""The output of a data set's own log parser: JSON in the form of SWE-bench Pro, or a dict of tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent.measure import Outcome

ENDS = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED, "erro": Outcome.ERROR}
"""By the first four letters in lower case: `PASSED` and `pass` are both in use."""


def json_results(text: str) -> Iterator[tuple[str, Outcome]]:
    """The tests in the first JSON object that starts a line."""
    for name, end in _pairs(_first(text)):
        if isinstance(name, str) and isinstance(end, str) and (outcome := ENDS.get(end.lower()[:4])):
            yield name, outcome


def _first(text: str) -> Any:
    begin = 0 if text.startswith("{") else text.find("\n{") + 1
    try:
        return json.JSONDecoder().raw_decode(text, begin)[0] if text.startswith("{", begin) else None
    except (ValueError, RecursionError):
        return None


def _pairs(found: Any) -> list[tuple[Any, Any]]:
    if not isinstance(found, dict):
        return []
    tests = found.get("tests")
    if isinstance(tests, list):
        return [(each.get("name"), each.get("status")) for each in tests if isinstance(each, dict)]
    return list(found.items())
