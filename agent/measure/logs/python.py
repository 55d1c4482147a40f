"""What pytest (`-rA`, `-v`) and unittest (`-v`) print."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.measure import Outcome

WORDS = {
    "PASSED": Outcome.PASSED,
    "FAILED": Outcome.FAILED,
    "ERROR": Outcome.ERROR,
    "SKIPPED": Outcome.SKIPPED,
    "XFAIL": Outcome.PASSED,
    "XPASS": Outcome.PASSED,
}
WORD = "|".join(WORDS)
SUMMARY = re.compile(rf"({WORD}) (\S+(?:\[.*?\](?= - |$))?)(?: - .*|)")
VERBOSE = re.compile(rf"(\S+::.+?) ({WORD})(?: \(.*\))?(?:\s+\[\s*\d+%\])?")
UNITTEST = re.compile(r"(.+?) \.\.\. (ok|FAIL|ERROR|skipped\b.*|expected failure|unexpected success)", re.IGNORECASE)
HEADING = re.compile(r"(FAIL|ERROR): (\S+ \([\w.]+\))(?: .*)?")
SYMPY = re.compile(r"(test_\S*)(?: .*)? (ok|E|F)")
BUTTONS = {"MouseButton.LEFT": "1", "MouseButton.RIGHT": "3"}


def pytest(text: str) -> Iterator[tuple[str, Outcome]]:
    """`file::test`. The summary gives only the place of skipped tests, so they are read from `-v` alone."""
    for line in text.split("\n"):
        stripped = line.strip()
        if match := SUMMARY.fullmatch(stripped):
            yield match[2], WORDS[match[1]]
        elif match := VERBOSE.fullmatch(stripped):
            yield match[1], WORDS[match[2]]


def pytest_options(text: str) -> Iterator[tuple[str, Outcome]]:
    """Like `pytest`, but keeping only the last part of a path parameter, which is the same on every machine."""
    for test, outcome in pytest(text):
        name, _, option = test.partition("[")
        a_path = option.startswith("/") and not option.startswith("//") and "*" not in option
        yield f"{name}[/{option.rpartition('/')[2]}" if a_path else test, outcome


def pytest_buttons(text: str) -> Iterator[tuple[str, Outcome]]:
    """Like `pytest`, with mouse buttons as numbers, as older versions of matplotlib print them."""
    for name, number in BUTTONS.items():
        text = text.replace(name, number)
    return pytest(text)


def sympy(text: str) -> Iterator[tuple[str, Outcome]]:
    """The test's function, from `bin/test --verbose`, without the file."""
    ends = {"ok": Outcome.PASSED, "E": Outcome.ERROR, "F": Outcome.FAILED}
    for line in text.split("\n"):
        if match := SYMPY.fullmatch(line.strip()):
            yield match[1], ends[match[2]]


def unittest(text: str) -> Iterator[tuple[str, Outcome]]:
    """`test (module.Class)`, from Python 3.11 on with the test's name after the class; a test with a docstring is named
    by its first line."""
    for line in text.split("\n"):
        if match := UNITTEST.fullmatch(line.strip()):
            yield match[1], _ending(match[2])
        elif match := HEADING.fullmatch(line.strip()):
            yield match[2], _ending(match[1])


def _ending(ending: str) -> Outcome:
    word = ending.lower()
    if word in ("ok", "expected failure"):
        return Outcome.PASSED
    if word.startswith("skipped"):
        return Outcome.SKIPPED
    return Outcome.ERROR if word == "error" else Outcome.FAILED
