"""What jest (`--verbose`), vitest (`--reporter=verbose`) and node's own runner (its `spec` reporter) print."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.measure import Outcome
from agent.measure.logs.lines import by_line

SYMBOLS = {
    "✓": Outcome.PASSED,
    "√": Outcome.PASSED,
    "✔": Outcome.PASSED,
    "✕": Outcome.FAILED,
    "\u00d7": Outcome.FAILED,
    "✖": Outcome.FAILED,
    "○": Outcome.SKIPPED,
    "✎": Outcome.SKIPPED,
    "↓": Outcome.SKIPPED,
    "□": Outcome.SKIPPED,
    "﹣": Outcome.SKIPPED,
}
LINE = re.compile(rf"\s*([{''.join(SYMBOLS)}]) (.+?)")
TIME = r"(?: \(?\d+(?:\.\d+)? ?m?s\)?)?"
JEST = re.compile(rf"(?:(?:skipped|todo) )?(.+?){TIME}")
VITEST = re.compile(rf"(.+?)(?: \(\d+ tests?.*\))?{TIME}(?: \[skipped\])?")
NODE = re.compile(rf"(.+?){TIME}( # (?:SKIP|TODO).*)?")


def jest(text: str) -> Iterator[tuple[str, Outcome]]:
    """The test's own name, without the `describe` blocks around it."""
    for mark, label in _marked(text):
        if match := JEST.fullmatch(label):
            yield match[1], SYMBOLS[mark]


jest_names = by_line(r"\[(?P<end>PASSED|FAILED)\]\s(?P<test>.+)")
"""jest's JSON, which SWE-bench's commands turn into a line per test."""
jest_marks = by_line(r"(?P<end>[✓✕○])\s(?P<test>.+?)(?:\s\(\d+\s*m?s\))?")
vitest_marks = by_line(r"(?P<end>[✓\u00d7↓])\s(?P<test>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?")
"""Both as SWE-bench reads them: jest's word for a skipped test stays in the name, and a number at the end of a name is
taken for the time."""
jest_files = by_line(r"(?P<end>PASS|FAIL)\s(?P<test>.*?)(?:\s\([\d.]+ ?m?s\).*)?")


def vitest(text: str) -> Iterator[tuple[str, Outcome]]:
    """`file > block > name`, as vitest prints it."""
    for mark, label in _marked(text):
        if match := VITEST.fullmatch(label):
            yield match[1], SYMBOLS[mark]


def node(text: str) -> Iterator[tuple[str, Outcome]]:
    """The test's own name; blocks are named like tests. The list of failures at the end is ignored."""
    for mark, label in _marked(text.split("\n✖ failing tests:", maxsplit=1)[0]):
        if match := NODE.fullmatch(label):
            yield match[1], Outcome.SKIPPED if match[2] else SYMBOLS[mark]


def _marked(text: str) -> Iterator[tuple[str, str]]:
    """Mark and text of each marked line."""
    for line in text.split("\n"):
        if match := LINE.fullmatch(line.rstrip()):
            yield match[1], match[2]
