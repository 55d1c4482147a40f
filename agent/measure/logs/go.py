"""What `go test -v` and `go test -json` print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent.measure import Outcome
from agent.measure.logs.lines import by_line

ENDS = {"PASS": Outcome.PASSED, "FAIL": Outcome.FAILED, "SKIP": Outcome.SKIPPED}


verbose = by_line(r"--- (?P<end>PASS|FAIL|SKIP): (?P<test>.+) \([^()]*\)")
"""`TestName`, `TestName/subtest`, without the package."""


def events(text: str) -> Iterator[tuple[str, Outcome]]:
    """`package::TestName/subtest`; a package that fails without a failed test, or cannot be built, is an error."""
    failed: set[str] = set()
    for event in read_events(text):
        package, test, end = event["Package"], event.get("Test"), ENDS.get(event["Action"].upper())
        if test and end:
            failed |= {package} if end is Outcome.FAILED else set()
            yield f"{package}::{test}", end
        elif end is Outcome.FAILED and package not in failed:
            yield package, Outcome.ERROR


def read_events(text: str) -> Iterator[dict[str, Any]]:
    """Yield the events of tests and packages. Other lines are the output of other programs that the command ran."""
    for line in text.split("\n"):
        try:
            event = json.loads(line) if line.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and _whole(event):
            yield event


def _whole(event: dict[str, Any]) -> bool:
    texts = (event.get("Action"), event.get("Package"), event.get("Test", ""))
    return all(isinstance(text, str) for text in texts)
