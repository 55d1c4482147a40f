"""Logs that show the suites of a test by indentation: those of jest, mocha and karma in SWE-bench Multimodal.

Names are built as by SWE-bench's own parsers (5.0.2, `harness/log_parsers/javascript.py`), to match its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.measure import Outcome
from agent.measure.logs.lines import Ends, outcome_of

PASSING = re.compile(r"\d+\spassing")
HIGHLIGHT_END = re.compile(r"\n[ \t]*\d+ passing")
MILLISECONDS = re.compile(r"\(\d+ms\)")
LAST_MILLISECONDS = re.compile(r"\(\d+ms\)$")
TOOK = re.compile(r"\s\(\d+m+s\).*")
NUMBERED = re.compile(r"\d+\)\s(.*)")
ASSERTION = re.compile(r"AssertionError:\s+#")
FILES = re.compile(r"running\s\d+\stest\sfiles")
RUNNING = re.compile(r"Running:(.*)\)\n{3}\s{2}(.*)\n")
BROKEN = re.compile(r"^\s{4}\d+\)\s(.*)", re.MULTILINE)
DONE = re.compile(r"^\s{4}✓\s(.*)\(", re.MULTILINE)
KARMA = re.compile(r"(\s*)([✔✖])?\s(.*)")


class Suites:
    """The suites around a line: earlier lines with less indentation."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int]] = []

    def see(self, line: str) -> None:
        """Process a line that names no test; an indented one starts a suite."""
        if indent := len(line) - len(line.lstrip()):
            while self._open and self._open[-1][1] >= indent:
                self._open.pop()
            self._open.append((line.strip(), indent))

    @property
    def names(self) -> list[str]:
        """The suite names, outermost first."""
        return [suite for suite, _ in self._open]


def calypso(text: str) -> Ends:
    """jest, for each of its commands, which the shell echoes (`set -x`)."""
    suites = Suites()
    for part in text.split(" ./node_modules/.bin/jest ")[1:]:
        for line in _until(part, ("Test Suites", "  ● ")):
            mark, _, label = line.strip().partition(" ")
            if label and mark in ("✓", "✕"):
                named = LAST_MILLISECONDS.sub("", label)
                yield f"{' - '.join(suites.names)} - {named}".strip(), outcome_of(mark)
            else:
                suites.see(line)


def lighthouse(text: str) -> Ends:
    """Mocha's `spec` reporter, for each set of files."""
    for part in FILES.split(text)[1:]:
        suites = Suites()
        for line in PASSING.split(part, maxsplit=1)[0].strip().split("\n"):
            if (found := _of_mocha(line.strip())) is None:
                suites.see(line)
            else:
                yield " - ".join([*suites.names, found[0]]), found[1]


def _of_mocha(label: str) -> tuple[str, Outcome] | None:
    """The test in a line of mocha's, without its time."""
    if label.startswith("✔") and label[1:2].isspace():
        named, outcome = label[2:], Outcome.PASSED
    elif match := NUMBERED.match(label):
        named, outcome = match[1], Outcome.FAILED
    else:
        return None
    return TOOK.sub("", named), outcome


def highlightjs(text: str) -> Ends:
    """Mocha's `spec` reporter, up to its summary; a test is named with the indented line before it."""
    suite = ""
    for line in HIGHLIGHT_END.split(text, maxsplit=1)[0].split("\n"):
        label = line.strip()
        if label[:1] in ("✓", "✔"):
            yield _below(suite, label[1:]), Outcome.PASSED
        elif re.match(r"\d+\)", label):
            yield _below(suite, label.partition(")")[2]), Outcome.FAILED
        elif line.startswith("  "):
            suite = f"{label}."


def _below(suite: str, label: str) -> str:
    return suite + MILLISECONDS.sub("", label).strip()


def next_js(text: str) -> Ends:
    """Karma for Alibaba Fusion's `next`: the output of each browser from its start to its totals."""
    suites = Suites()
    for part in _without_blocks(text).split(" xvfb-run ")[1:]:
        for line in _until(part.rpartition("Starting browser Chrome")[2], ("TOTAL",)):
            if line.strip().startswith(("ERROR", "LOG", "WARN", "Check", "in")):
                continue
            mark = next((mark for mark in "✗✓" if mark in line), "")
            if mark:
                yield " - ".join([*suites.names, line.partition(mark)[2].lstrip()]), outcome_of(mark)
            else:
                suites.see(line)


def _without_blocks(text: str) -> str:
    """The text without the output of assertions, each up to a blank line."""
    kept, begin = [], 0
    while match := ASSERTION.search(text, begin):
        end = text.find("\n\n", match.end())
        if end < 0:
            break
        kept.append(text[begin : match.start()])
        begin = end + 2
    return "".join([*kept, text[begin:]])


def cypress(text: str) -> Ends:
    """Cypress, for version 1.27 of the same repository: `suite: name`."""
    parts = RUNNING.split(text)
    for suite, label in zip(parts[2::3], parts[3::3], strict=True):
        for pattern, outcome in ((BROKEN, Outcome.FAILED), (DONE, Outcome.PASSED)):
            for name in pattern.findall(label):
                yield f"{suite}: {name.strip()}", outcome


def karma(text: str) -> Ends:
    """Karma's `spec` reporter, from the browser's start to its summary: `suite > name`."""
    current, suites = -1, list[str]()
    started = False
    for line in _until(text, ("SUMMARY:",)):
        starts = "Starting browser" in line
        started = started or starts
        if starts or not started or not (match := KARMA.fullmatch(line)):
            continue
        indent, mark, label = match.groups()
        if mark:
            yield " > ".join([*suites, label]), outcome_of(mark)
        elif indent and len(indent) > current:
            suites.append(label)
            current = len(indent)
        elif indent and len(indent) < current:
            del suites[-1:]
            current = len(indent)


def _until(text: str, ends: tuple[str, ...]) -> Iterator[str]:
    """The lines before the first one that starts with one of `ends`."""
    for line in text.split("\n"):
        if line.startswith(ends):
            return
        yield line
