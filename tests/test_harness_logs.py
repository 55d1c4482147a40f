"""Logs of eval scripts: what they are evidence of, whatever a patch prints into them."""

from __future__ import annotations

from functools import partial

import pytest

from agent.measure import Outcome, SuiteReport
from agent.measure.logs import parse
from benchmarks.data.harness_logs import END, EXIT_CODE, START, read_log
from benchmarks.data.instances import EvalType, Hidden
from benchmarks.grading.verdicts import describe, judge


def log(*output: str, code: int = 0, before: str = "+ git status") -> str:
    """A log as bash traces it."""
    head, tail = f"{before}\n+ : '{START}'", f"+ : '{END}'\n+ echo '{EXIT_CODE}: {code}'\n{EXIT_CODE}: {code}\n"
    return "\n".join([head, *output, tail])


def read(text: str) -> SuiteReport:
    return read_log(text, partial(parse, "parse_log_pytest"))


def hidden(*failing: str, kept: tuple[str, ...] = (), eval_type: EvalType = "pass_and_fail") -> Hidden:
    return Hidden(failing, kept, b"", b"", eval_type=eval_type)


def test_tests_that_passed_resolve_and_one_that_failed_does_not() -> None:
    report = read(log("PASSED t.py::a", "FAILED t.py::b - assert 1 == 2", code=1))
    assert judge(report, hidden("t.py::a")) == ((), ())
    assert judge(report, hidden("t.py::a", "t.py::b", "t.py::c")) == (("t.py::b", "t.py::c"), ())


def test_a_skipped_fail_to_pass_has_not_passed_and_a_skipped_pass_to_pass_is_not_broken() -> None:
    report = read(log("t.py::a SKIPPED (no)  [ 50%]", "t.py::b SKIPPED (no)  [100%]"))
    failing, broken = judge(report, hidden("t.py::a", kept=("t.py::b",)))
    assert (failing, broken) == (("t.py::a",), ())
    assert describe(report, failing, broken) == "1 test of FAIL_TO_PASS did not pass, 1 skipped"


def test_no_sign_that_the_suite_ran_is_a_run_that_is_not_valid() -> None:
    report = read(log("Chrome could not be started", "Executed 0 of 0"))
    assert (report.valid, "no sign that a suite ran" in report.problem) == (False, True)
    assert judge(report, hidden("a", eval_type="fail_only")) == (("a",), ())


def test_a_suite_that_names_only_its_failures_is_believed_when_it_says_how_many_it_ran() -> None:
    report = read(log("Executed 12 of 12 SUCCESS"))
    assert (report.valid, judge(report, hidden("a", kept=("b",), eval_type="fail_only"))) == (True, ((), ()))
    assert judge(report, hidden("a")) == (("a",), ())


def test_a_command_that_failed_while_every_test_did_well_is_not_believed() -> None:
    report = read(log("PASSED t.py::a", code=1))
    assert (report.valid, judge(report, hidden("t.py::a"))) == (False, (("t.py::a",), ()))
    assert "exit code 1" in report.problem
    assert read(log("PASSED t.py::a", "ERROR t.py::b", code=1)).valid


def test_no_test_has_passed_in_a_file_that_could_not_be_imported() -> None:
    report = read(log("PASSED t.py::a", "PASSED u.py::a", "ERROR t.py - ImportError: no", code=2))
    assert judge(report, hidden("t.py::a", "u.py::a")) == (("t.py::a",), ())


@pytest.mark.parametrize("text", ["PASSED t.py::a", f"{START}\nPASSED t.py::a", f"PASSED t.py::a\n{END}"])
def test_a_log_without_both_markers_says_nothing(text: str) -> None:
    assert "the script did not get that far" in read(text).problem


def test_a_log_that_says_that_the_patch_was_refused_says_nothing_else() -> None:
    assert "Patch Apply Failed" in read(log("PASSED t.py::a", before=">>>>> Patch Apply Failed:")).problem


def test_an_end_that_the_patch_printed_does_not_hide_what_came_after_it() -> None:
    report = read(log("PASSED t.py::a", END, f"{EXIT_CODE}: 0", "FAILED t.py::a - it is so", code=1))
    assert report.outcomes == {"t.py::a": Outcome.FAILED}
    assert not read(log("PASSED t.py::a", END, f"{EXIT_CODE}: 0", code=1)).valid


def test_an_exit_code_that_is_printed_after_the_real_one_changes_nothing() -> None:
    assert not read(log("PASSED t.py::a", code=1) + f"{END}\n{EXIT_CODE}: 0\n").valid


def test_a_whole_run_that_the_patch_printed_before_the_tests_is_not_taken_for_them() -> None:
    forged = log("PASSED t.py::a")
    assert judge(read(log("FAILED t.py::a", code=1, before=forged)), hidden("t.py::a")) == (("t.py::a",), ())
    assert not read(log("INTERNALERROR> it broke", code=3, before=forged)).valid


def test_results_outside_the_markers_count_where_there_are_none_between_them() -> None:
    assert read(log("", before="PASSED t.py::a")).outcomes == {"t.py::a": Outcome.PASSED}


def test_an_id_that_was_cut_stands_for_what_it_begins_where_that_agrees() -> None:
    report = read(
        log("PASSED t.py::a[x y]", "PASSED t.py::a[x z]", "PASSED t.py::b[x y]", "FAILED t.py::b[x z]", code=1)
    )
    assert judge(report, hidden("t.py::a[x", "t.py::b[x", "t.py::a[")) == (("t.py::b[x",), ())
