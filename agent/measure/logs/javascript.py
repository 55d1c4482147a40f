"""What jest (`--verbose`), vitest (`--reporter=verbose`) and node's own runner (its `spec` reporter) print."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.measure import Outcome
from agent.measure.logs.lines import by_line, outcome_of

SYMBOLS = "[✓√✔✕\u00d7✖○✎↓□﹣]"
TIME = r"(?: \(?\d+(?:\.\d+)? ?m?s\)?)?"
NODE = re.compile(rf"({SYMBOLS}) (.+?){TIME}( # (?:SKIP|TODO).*)?")

jest = by_line(rf"(?P<end>{SYMBOLS}) (?:(?:skipped|todo) )?(?P<test>.+?){TIME}")
"""The test's own name, without the `describe` blocks around it."""
jest_names = by_line(r"\[(?P<end>PASSED|FAILED)\]\s(?P<test>.+)")
"""jest's JSON, which SWE-bench's commands turn into a line per test."""
jest_marks = by_line(r"(?P<end>[✓✕○])\s(?P<test>.+?)(?:\s\(\d+\s*m?s\))?")
vitest_marks = by_line(r"(?P<end>[✓\u00d7↓])\s(?P<test>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?")
"""Both as SWE-bench reads them: jest's word for a skipped test stays in the name, and a number at the end of a name is
taken for the time."""
jest_files = by_line(r"(?P<end>PASS|FAIL)\s(?P<test>.*?)(?:\s\([\d.]+ ?m?s\).*)?")
vitest = by_line(rf"(?P<end>{SYMBOLS}) (?P<test>.+?)(?: \(\d+ tests?.*\))?{TIME}(?: \[skipped\])?")
"""`file > block > name`, as vitest prints it."""


def node(text: str) -> Iterator[tuple[str, Outcome]]:
    """The test's own name; blocks are named like tests. The list of failures at the end is ignored."""
    for line in text.split("\n✖ failing tests:", maxsplit=1)[0].split("\n"):
        if match := NODE.fullmatch(line.strip()):
            yield match[2], Outcome.SKIPPED if match[3] else outcome_of(match[1])
