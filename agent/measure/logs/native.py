"""What test runners of C and C++ print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET
from xml.parsers import expat

from agent.measure import Outcome
from agent.measure.documents import root
from agent.measure.logs.lines import by_line, outcome_of

automake = by_line(r"(?P<end>PASS|FAIL|SKIP): (?P<test>.+)")
"""`make check`: the script's name."""
micropython = by_line(r"(?P<end>pass|FAIL|skip)\s+(?P<test>.+)")
googletest = by_line(
    r"(?:.*\[ *|---- |\*{4} )(?P<end>OK|FAILED|Passed)(?: *\]|:) (?P<test>\S.*?)(?: \(\d+ ms\)| \([\d.]+ m?s\))?"
)
"""`suite.name`; the similar output of PonyTest is read too."""
ctest = by_line(r"\d+/\d+ +Test +#\d+: (?P<test>\S+(?: \S+)*?) \.{2,} *(?P<end>Passed|\*{3}[A-Z][a-z]+)\b.*")
_checks = by_line(r"-- performing test (?P<test>\S.*) - (?P<end>pass|failed|skipped)")
REDIS = re.compile(r"\[(ok|err|skip|ignore)\]:\s(.+?)(?:\s\(\d+\s*m?s\))?")
PLACE = re.compile(r"\s+in\s+\S+$")


def checked(text: str) -> Iterator[tuple[str, Outcome]]:
    """Like `ctest`, with CMake's own checks, in lower case: the names of Catch2's tests in Multi-SWE-bench."""
    for test, outcome in ctest(text):
        yield test.lower(), outcome
    yield from _checks(text.lower().replace(" - success", " - pass"))


def doctest(text: str) -> Iterator[tuple[str, Outcome]]:
    """`case > subcase`, from the `xml` reporter: failed if any of the subcase's expressions did."""
    _, found, rest = text.partition("<doctest")
    inside, ended, _ = rest.partition("</doctest>")
    try:
        document = root(f"{found}{inside}{ended}".encode()) if ended else None
    except (ET.ParseError, expat.ExpatError):
        return
    yield from () if document is None else _parts(document)


def _parts(document: ET.Element) -> Iterator[tuple[str, Outcome]]:
    """Visits each element once, whatever the nesting."""
    above = {child: parent for parent in document.iter() for child in parent}
    failed = set[ET.Element]()
    for expression in document.iter("Expression"):
        at = None if expression.get("success") == "true" else expression
        while at is not None and at not in failed:
            failed.add(at)
            at = above.get(at)
    cases = {document: ""}
    for each in document.iter():
        case = cases[each] = str(each.get("name")) if each.tag == "TestCase" else cases[above.get(each, document)]
        if each.tag == "SubCase" and case:
            yield f"{case} > {each.get('name')}", Outcome.FAILED if each in failed else Outcome.PASSED


def redis(text: str) -> Iterator[tuple[str, Outcome]]:
    """Redis and relatives; they print the place of failures only."""
    for line in text.split("\n"):
        if match := REDIS.fullmatch(line.strip()):
            test = PLACE.sub("", match[2]) if match[1] == "err" else match[2]
            yield test, outcome_of(match[1])
