"""What test runners of C and C++ print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET
from xml.parsers import expat

from agent.measure import Outcome
from agent.measure.documents import root
from agent.measure.logs.lines import by_line

__all__ = ["automake", "checked", "ctest", "doctest", "googletest", "micropython", "redis"]

automake = by_line(r"(?P<end>PASS|FAIL|SKIP): (?P<test>.+)")
"""Of `make check`: the script's name."""
micropython = by_line(r"(?P<end>pass|FAIL|skip)\s+(?P<test>.+)")
googletest = by_line(
    r"(?:.*\[ *|---- |\*{4} )(?P<end>OK|FAILED|Passed)(?: *\]|:) (?P<test>\S.*?)(?: \(\d+ ms\)| \([\d.]+ m?s\))?"
)
"""`suite.name`; PonyTest, which prints nearly the same, is read, too."""
ctest = by_line(r"\d+/\d+ +Test +#\d+: (?P<test>\S+(?: \S+)*?) \.{2,} *(?P<end>Passed|\*{3}[A-Z][a-z]+)\b.*")
_checks = by_line(r"-- performing test (?P<test>\S.*) - (?P<end>pass|failed|skipped)")
REDIS = re.compile(r"\[(ok|err|skip|ignore)\]:\s(.+?)(?:\s\(\d+\s*m?s\))?")
PLACE = re.compile(r"\s+in\s+\S+$")


def checked(text: str) -> Iterator[tuple[str, Outcome]]:
    """As `ctest`, and what CMake tries before, in small letters: so Multi-SWE-bench names the tests of Catch2."""
    for test, outcome in ctest(text):
        yield test.lower(), outcome
    yield from _checks(text.lower().replace(" - success", " - pass"))


def doctest(text: str) -> Iterator[tuple[str, Outcome]]:
    """`case > subcase`, of its `xml` reporter: failed where any of the subcase's expressions did."""
    _, found, rest = text.partition("<doctest")
    inside, ended, _ = rest.partition("</doctest>")
    try:
        document = root(f"{found}{inside}{ended}".encode()) if ended else None
    except (ET.ParseError, expat.ExpatError):
        return
    for case in () if document is None else document.iterfind(".//TestCase"):
        for part in case.iterfind(".//SubCase"):
            held = all(each.get("success") == "true" for each in part.iterfind(".//Expression"))
            yield f"{case.get('name')} > {part.get('name')}", Outcome.PASSED if held else Outcome.FAILED


def redis(text: str) -> Iterator[tuple[str, Outcome]]:
    """What Redis and its relatives print; only of what failed they say where it is."""
    ends = {"ok": Outcome.PASSED, "err": Outcome.FAILED}
    for line in text.split("\n"):
        if match := REDIS.fullmatch(line.strip()):
            test = PLACE.sub("", match[2]) if match[1] == "err" else match[2]
            yield test, ends.get(match[1], Outcome.SKIPPED)
