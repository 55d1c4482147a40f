"""Adapters `log:NAME`: any command whose printed text a log parser of that name reads (`agent.measure.logs`).

Invariant: a log proves nothing by itself. Whatever runs in the command can print it, so the report is worth no more
than the exit code, with which it has to agree. A test that the log does not name did not pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from agent.measure import Outcome
from agent.measure.adapters import MESSAGE_BYTES, PROC, Adapter, Invocation, RunOutput
from agent.measure.adapters.junit import JUNIT
from agent.measure.inside.cutting import cut
from agent.measure.logs import PARSERS, parse
from agent.measure.reading import Transcript
from agent.measure.warm.plugins import Limits, RunNames
from agent.untrusted import terminal_text

LOG = "log:"
NOSE = re.compile(
    r"(?<!\S)(?<!setup\.py )((?:\S*/)?(?:nosetests[\d.-]*|nose2|pynose)|-m\s+(?:nose2?|pynose))(?![\w./-])"
)
SAYS_MORE = re.compile(r"(?<!\S)(-v+|--verbose|--verbosity=[2-9])(?!\S)")
BEHIND = ("unittest",)
"""Parsers of logs that name a failed test a second time, with its error."""


def _all(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns)


SIGNATURES: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "unittest": _all(r"^Ran \d+ tests? in [\d.]+s$", r" \.\.\. (?:ok|FAIL|ERROR|skipped\b.*)$"),
    "pytest": _all(
        r"^=+ .*\b\d+ (?:passed|failed|errors?|skipped)\b.* in [\d.]+s.*=+$",
        r"^\S+::.+ (?:PASSED|FAILED|ERROR|SKIPPED)\b|^PASSED \S+::",
    ),
    "tap": _all(r"^1\.\.\d+\b"),
    "go": _all(r"^(?:PASS|FAIL|ok\s+\S+\s+[\d.]+s|FAIL\s+\S+\s+[\d.]+s)$", r"^=== RUN "),
    "cargo": _all(r"^test result: (?:ok|FAILED)\. \d+ passed"),
    "ctest": _all(r"^\d+% tests passed, \d+ tests failed out of \d+"),
    "googletest": _all(r"^\[=+\] .*\bran\."),
    "automake": _all(r"^# TOTAL: +\d+$"),
    "phpunit": _all(r"^(?:OK \(\d+ tests?,|Tests: \d+, Assertions:)"),
    "jest": _all(r"^Tests:\s+.*\b\d+ total$"),
    "node": _all(r"^\S tests \d+$"),
    "minitest": _all(r"^\d+ runs, \d+ assertions,"),
    "test-unit": _all(r"^\d+ tests, \d+ assertions,"),
}
"""Found in the output of a runner that names each test, usually at the end. Output without it does not come from that
runner, whatever its lines look like."""

LITERAL = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|`([^`]*)`")
FILLED = re.compile(r"\$?\{[^{}]*\}|%[-\d.]*[sdifgvq]|\$\w+")


def guessed(text: str, exit_code: int) -> str | None:
    """Return the parser that reads the most tests in a command's output, among those whose signature the output
    contains and whose outcomes agree with the exit code."""
    text = terminal_text(text)
    counts = {name: len(ends) for name in SIGNATURES if (ends := _outcomes(name, text)) and _agrees(ends, exit_code)}
    return max(counts, key=counts.__getitem__, default=None)


def verbose(command: str) -> str:
    """Return the command; nose and its successors get an option that makes them name the tests."""
    return command if SAYS_MORE.search(command) else NOSE.sub(r"\1 -v", command)


def forges(parser: str, line: str) -> bool:
    """Whether a source line contains text that the parser takes for a passed test."""
    for literal in LITERAL.finditer(line):
        text = FILLED.sub("1", "".join(filter(None, literal.groups()))).replace("\\n", "\n")
        if Outcome.PASSED in parse(parser, text).values():
            return True
    return False


def _outcomes(name: str, text: str) -> Mapping[str, Outcome]:
    return parse(name, text) if all(pattern.search(text) for pattern in SIGNATURES[name]) else {}


def _agrees(ends: Mapping[str, Outcome], exit_code: int) -> bool:
    failed = any(outcome.failed for outcome in ends.values())
    return failed == (exit_code != 0)


def invocation(names: RunNames, command: str, wanted: Sequence[str], limits: Limits) -> Invocation:
    """Run the command; its output is the report."""
    return Invocation(verbose(command), captured=True)


def _read(parser: str, output: RunOutput) -> Transcript:
    """Read the log. Ids are the names in it."""
    text = output.report.decode(errors="replace")
    transcript, plain = Transcript(), terminal_text(text)
    for test, outcome in parse(parser, text).items():
        transcript.opened = True
        transcript.test(test, outcome, message=_about(parser, test, plain) if outcome.failed else "")
    if transcript.opened:
        transcript.end()
    return transcript


def _about(parser: str, test: str, text: str) -> str:
    """The log text that follows a test's name, which is probably about that test."""
    at = text.rfind(test) if parser in BEHIND else text.find(test)
    return cut(text[at : at + 2 * MESSAGE_BYTES] if at >= 0 else "", MESSAGE_BYTES)[0]


def _adapter(parser: str) -> Adapter:
    return Adapter(
        name=f"{LOG}{parser}",
        command="",
        named=NOSE if parser == "unittest" else re.compile(r"(?!)"),
        invocation=invocation,
        read=partial(_read, parser),
        tests=JUNIT.tests,
        tricks=re.compile(rf"\b_exit\(\s*0\s*\)|{PROC}"),
    )


LOGS: Mapping[str, Adapter] = {adapter.name: adapter for adapter in map(_adapter, PARSERS)}
