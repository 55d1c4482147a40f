"""Reads the log of an eval script by the rules of SWE-bench's own grader (5.0.2, `harness/grading.py`).

Rules: a log is not believed if it lacks its markers, if it names no test and shows no sign that a suite ran, or if no
test failed but the command did. A skipped test of FAIL_TO_PASS has not passed; a skipped test of PASS_TO_PASS is not
broken.

This reader is stricter where a patch could deceive that grader by what it prints: it reads up to the last end marker,
not the first, and all exit codes, not the first; and no test of a file that could not be imported has passed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from agent.measure import Outcome, SuiteReport
from agent.measure.ids import file_of
from benchmarks.data.instances import Hidden

LOG = "log"
"""The adapter of a report that was read from a log."""
START = ">>>>> Start Test Output"
END = ">>>>> End Test Output"
EXIT_CODE = ">>>>> Test Exit Code"
FAULTS = (">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored", ">>>>> Tests Timed Out")
FAILURES = (Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT)

RAN = re.compile(
    r"Executed [1-9]\d* of \d+"
    r"|TOTAL: [1-9]\d* (SUCCESS|FAILED)"
    r"|[1-9]\d* passing"
    r"|Tests:\s+[1-9]\d*"
    r"|Test Suites:\s+(\d+ \w+, )*[1-9]\d* total"
    r"|^# tests [1-9]\d*"
    r"|[1-9]\d* specs?, \d+ failures?"
    r"|': ok$",
    re.MULTILINE,
)
"""Signs that a suite ran, for runners whose logs name failures only. A count of zero is no sign."""

Parser = Callable[[str], Mapping[str, Outcome]]


def read_log(log: str, parse: Parser) -> SuiteReport:
    """The outcome of each test in a log. If the log is not believed, the report is not valid and says why. `parse`
    reads the output of the tests."""
    if fault := next((fault for fault in FAULTS if fault in log), ""):
        return _invalid(f"the log says {fault!r}")
    _, started, rest = log.partition(START)
    output, ended, _ = rest.rpartition(END)
    if not started or not ended:
        return _invalid(f"the log has no {END if started else START!r}: the script did not get that far")
    outcomes = _of_imported(parse(output) or parse(log))
    if not outcomes and not RAN.search(log):
        return _invalid("the log names no test and shows no sign that a suite ran")
    code = _exit_code(rest)
    if code and outcomes and not any(outcome in FAILURES for outcome in outcomes.values()):
        return _invalid(f"the tests' command ended with exit code {code}, but the log reports no failed test")
    return SuiteReport(outcomes, collected=len(outcomes), exit_code=code, adapter=LOG)


def _of_imported(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes, with an error for every test in a file that could not be imported: if the log says that such a test
    passed, something other than the runner printed that."""
    broken = {name for name, outcome in outcomes.items() if outcome is Outcome.ERROR and "::" not in name}
    return {test: Outcome.ERROR if file_of(test) in broken else outcome for test, outcome in outcomes.items()}


def _invalid(problem: str) -> SuiteReport:
    return SuiteReport(valid=False, problem=problem, adapter=LOG)


def _exit_code(text: str) -> int:
    """The exit code of the tests' command, as the script prints it: the first that is not 0, if there is one."""
    codes: list[str] = re.findall(rf"{EXIT_CODE}:\s*(-?\d+)", text)
    return next((int(code) for code in codes if int(code)), 0)


def judge_log(report: SuiteReport, hidden: Hidden) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests of FAIL_TO_PASS that did not pass, and the tests of PASS_TO_PASS that are broken; all of them if the
    log is not believed."""
    if not report.valid:
        return hidden.fail_to_pass, hidden.pass_to_pass
    outcomes = report.outcomes
    if hidden.eval_type == "fail_only":
        failed = {test for test, outcome in outcomes.items() if outcome is Outcome.FAILED}
        return _among(hidden.fail_to_pass, failed), _among(hidden.pass_to_pass, failed)
    failing = tuple(t for t in hidden.fail_to_pass if _outcome(t, outcomes) is not Outcome.PASSED)
    kept = (Outcome.PASSED, Outcome.SKIPPED)
    return failing, tuple(t for t in hidden.pass_to_pass if _outcome(t, outcomes) not in kept)


def _among(tests: tuple[str, ...], chosen: set[str]) -> tuple[str, ...]:
    return tuple(test for test in tests if test in chosen)


def _outcome(test: str, outcomes: Mapping[str, Outcome]) -> Outcome | None:
    """How a test ended. Published sets cut some ids within their parameters; such an id stands for all tests whose ids
    begin with it, if they agree on whether they passed."""
    if test in outcomes or test.count("[") <= test.count("]"):
        return outcomes.get(test)
    begun = [outcome for other, outcome in outcomes.items() if other.startswith(test)]
    return begun[0] if len({outcome is Outcome.PASSED for outcome in begun}) == 1 else None
