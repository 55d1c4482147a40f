"""What `cargo test` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.measure import Outcome
from agent.measure.logs.lines import outcome_of

BEGINS = re.compile(r"test (.+?)(?: - should panic)? \.\.\. ?(.*)")
ENDS = re.compile(r"(ok|FAILED|ignored)\b.*")
BOUNDARY = re.compile(r"running \d+ tests?|test result: .*")


def cargo(text: str) -> Iterator[tuple[str, Outcome]]:
    """`module::test`, without the crate. A test's output may come before its end, on lines of its own."""
    waiting = ""
    for line in text.split("\n"):
        if begins := BEGINS.fullmatch(line.strip()):
            waiting, line = begins[1], begins[2]
        elif BOUNDARY.fullmatch(line.strip()):
            waiting = ""
        if waiting and (ends := ENDS.fullmatch(line.strip())):
            yield waiting, outcome_of(ends[1])
            waiting = ""
