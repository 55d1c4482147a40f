"""What Deno's runner prints for Quarto's tests; only colours show the outcomes, so this log is read with its
colours."""

from __future__ import annotations

import re

from agent.measure import Outcome
from agent.measure.logs.lines import Ends
from agent.untrusted import terminal_text

ENDS = (("32mok", Outcome.PASSED), ("31mFAILED", Outcome.FAILED))
TEMPORARY = (re.compile(r"/tmp/(\w+)\.qmd"), re.compile(r"/tmp/(\w+)/"))  # noqa: S108  # in a log


def quarto(text: str) -> Ends:
    """`[smoke] > what it does`, up to the list of errors; a test that starts and never ends failed. Temporary files are
    numbered in order of appearance (SWE-bench 5.0.2, `parse_log_quarto_cli`)."""
    numbers: dict[str, int] = {}
    has_ended: dict[str, bool] = {}
    for line in text.split("\n"):
        if "ERRORS" in line or "failures:" in line:
            break
        if ("[smoke]" in line or "[unit]" in line) and not _of_a_step(line):
            test = terminal_text(_numbered(line, numbers).partition("...")[0]).strip()
            outcome = next((outcome for colour, outcome in ENDS if colour in line), None)
            has_ended[test] = has_ended.get(test, False) or outcome is not None
            if outcome is not None:
                yield test, outcome
    for test, ended in has_ended.items():
        if not ended:
            yield test, Outcome.FAILED


def _of_a_step(line: str) -> bool:
    counted = all(word in line for word in ("passed", "failed", "steps"))
    return line.startswith("test result:") or "34mINFO" in line or counted


def _numbered(line: str, numbers: dict[str, int]) -> str:
    for pattern in TEMPORARY:
        if match := pattern.search(line):
            number = numbers.setdefault(match[0], len(numbers))
            line = pattern.sub(f"/tmp/{number}", line)  # noqa: S108  # in a log
    return line
