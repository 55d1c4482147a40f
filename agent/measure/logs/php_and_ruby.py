"""What PHPUnit (`--testdox`) and the runners of Ruby print."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.measure import Outcome
from agent.measure.logs.lines import by_line, outcome_of

SUITE = re.compile(r"(\w.+) \(.+\)")
MARKED = re.compile(r"\s*([✔✘↩])\s*(.*)")


def phpunit(text: str) -> Iterator[tuple[str, Outcome]]:
    """`Class > what it does`."""
    suite = "None"
    for line in text.split("\n"):
        if match := SUITE.fullmatch(line):
            suite = match[1]
        elif match := MARKED.fullmatch(line):
            yield f"{suite} > {match[2]}", outcome_of(match[1])


def minitest(text: str) -> Iterator[tuple[str, Outcome]]:
    """The text before the last full stop that ends a word, in lines like `a test. (Class) = 0.01 s = F`."""
    for line in text.split("\n"):
        test, _, rest = line.strip().rpartition(". ")
        last = max(map(rest.rfind, ".FE"))
        if test and "=" in rest[: last + 1]:
            yield test, outcome_of(rest[last])


def cucumber(text: str) -> Iterator[tuple[str, Outcome]]:
    """The text before the dots of the `progress` format."""
    for line in text.split("\n"):
        test, _, rest = line.strip().rpartition(" .")
        ended = rest.lstrip(".")[:1]
        if test and (ended == "F" or rest.startswith(".")):
            yield test, Outcome.FAILED if ended == "F" else Outcome.PASSED


test_unit = by_line(r"(?:test: )?(?P<test>.+):\s+(?P<end>\.|[EFO]\b).*")
rspec = by_line(r"(?P<test>.+) - (?P<end>passed|failed).*")
"""RSpec's JSON, which SWE-bench's commands turn into a line per test."""
