"""Logs as Multi-SWE-bench reads them, with the names in its rows (`harness/repos` there).

If a test both passed and failed, Multi-SWE-bench's own parser refuses the log; here the failure counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from agent.measure import Outcome
from agent.measure.logs.go import verbose
from agent.measure.logs.lines import Ends, outcome_of

BROKEN = re.compile(r"FAIL\t(\S+)\s.*")
RUNNING = re.compile(r"Running (\S.*)")
RAN = re.compile(r"Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+), Time elapsed: [\d.]+ sec")
TASK = re.compile(r"> Task :(\S+)(?: (UP-TO-DATE|FAILED|SKIPPED|NO-SOURCE))?")
TASKS = {None: Outcome.PASSED, "UP-TO-DATE": Outcome.PASSED, "FAILED": Outcome.FAILED}
NUMBERED = re.compile(r"\d+\) (.+)")

FILES = {"PASS": Outcome.PASSED, "FAIL": Outcome.FAILED}
TICKS = {"✓": Outcome.PASSED, "✕": Outcome.FAILED, "\u00d7": Outcome.FAILED}

TAIL = 40
"""Characters at the end of a line that may contain a test's time."""
JEST_TIME = re.compile(r"\s\(\d*\.?\d*\s*\w+\)$")
VITEST_TIME = re.compile(r"\s*\d*\.?\d+\s*(?:ms|s|m)$")
BRACKETS = re.compile(r"\s+\(.+\)$")
COUNTED = re.compile(r"(?:\s\(\d+\s+tests\))?(?:\s*\(?\d*\.?\d+\s*\w+\)?)?$")


def packages(text: str) -> Ends:
    """Go tests, and packages that failed."""
    yield from verbose(text)
    for line in text.split("\n"):
        if match := BROKEN.fullmatch(line):
            yield match[1], Outcome.FAILED


def parents(text: str) -> Ends:
    """Go tests; a subtest counts under the name of the test around it."""
    for test, outcome in packages(text):
        yield (test.rpartition("/")[0] or test) if test.startswith("Test") else test, outcome


def maven(text: str) -> Ends:
    """Classes, which an older Maven names on the line before their result."""
    running = ""
    for line in text.split("\n"):
        if match := RUNNING.fullmatch(line.strip()):
            running = match[1]
        elif running and (match := RAN.match(line)):
            run, failures, errors, skipped = map(int, match.groups())
            done = Outcome.PASSED if run > skipped else Outcome.SKIPPED
            yield running, Outcome.FAILED if failures or errors else done
            running = ""


def gradle(text: str) -> Ends:
    """Tests by `class > name`, and the tasks of the build."""
    for line in text.split("\n"):
        label, _, word = line.strip().rpartition(" ")
        if match := TASK.fullmatch(line.strip()):
            yield match[1], TASKS.get(match[2], Outcome.SKIPPED)
        elif word in ("PASSED", "FAILED", "SKIPPED") and " > " in label:
            yield label, outcome_of(word)


def _untimed(label: str, time: re.Pattern[str]) -> str:
    return label[:-TAIL] + time.sub("", label[-TAIL:], count=1)


def _marked(marks: Mapping[str, Outcome], time: re.Pattern[str], text: str) -> Ends:
    for line in text.split("\n"):
        mark, _, label = line.strip().partition(" ")
        if label and mark in marks:
            yield _untimed(label, time), marks[mark]


def _in_files(time: re.Pattern[str], text: str) -> Ends:
    """Files, and `file:name` of the tests below them."""
    file = ""
    for line in text.split("\n"):
        mark, _, label = line.strip().partition(" ")
        if label and mark in FILES:
            file = _untimed(label, time)
            yield file, FILES[mark]
        elif label and file and mark in TICKS:
            yield f"{file}:{_untimed(label, time)}", TICKS[mark]


jest = partial(_in_files, JEST_TIME)
jest_bare = partial(_in_files, BRACKETS)
"""Like `jest`, but cutting off all text in brackets at the end of a name."""
vitest = partial(_marked, TICKS, VITEST_TIME)
"""`file > block > name`, and files with the number of their tests."""


def jest_or_vitest(text: str) -> Ends:
    """Tests and files of either runner, in a repository that has both."""
    yield from _marked({"✓": Outcome.PASSED}, COUNTED, text)
    yield from _marked(FILES, JEST_TIME, text)


def mocha(text: str) -> Ends:
    """The test's own name, from the `spec` reporter; failures have a number instead of a mark."""
    yield from _marked({"✔": Outcome.PASSED}, JEST_TIME, text)
    for line in text.split("\n"):
        if match := NUMBERED.fullmatch(line.strip()):
            yield _untimed(match[1], JEST_TIME), Outcome.FAILED
