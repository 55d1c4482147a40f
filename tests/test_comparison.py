"""What a run of the tests says against the unchanged code, and how a model is told of it."""

from __future__ import annotations

from dataclasses import replace

from agent.actions.comparison import comparison_text
from agent.measure import Outcome, SuiteReport
from agent.measure.comparison import Comparison, compare
from tests.memories import report

BASE = report({"a.py::old": "assert 0", "a.py::wrong": "assert 1"}, ["a.py::one", "a.py::two", "b.py::three"])


def ends(**outcomes: Outcome) -> SuiteReport:
    return SuiteReport({f"a.py::{name}": end for name, end in outcomes.items()}, collected=len(outcomes))


class TestAComparison:
    def test_tells_what_a_change_did_from_what_was_wrong_before(self) -> None:
        after = report({"a.py::old": "assert 0", "a.py::two": "assert 2"}, ["a.py::wrong", "a.py::one", "b.py::three"])
        assert compare(BASE, after) == Comparison(
            fixed=("a.py::wrong",), newly_broken=("a.py::two",), failing_still=("a.py::old",), asked=5
        )

    def test_of_some_tests_says_nothing_of_the_others(self) -> None:
        some = replace(report({"a.py::two": "assert 2"}), complete=False)
        assert compare(BASE, some) == Comparison(newly_broken=("a.py::two",), asked=1)

    def test_sets_flaky_tests_aside(self) -> None:
        base = replace(BASE, flaky=("a.py::two", "a.py::old"))
        after = report({"a.py::two": "assert 2"}, ["a.py::old", "a.py::wrong", "a.py::one", "b.py::three"])
        assert compare(base, after) == Comparison(fixed=("a.py::wrong",), asked=5)

    def test_counts_a_passing_test_that_is_gone_or_skipped_now_as_broken(self) -> None:
        after = SuiteReport({"a.py::one": Outcome.SKIPPED, "a.py::two": Outcome.PASSED})
        assert compare(BASE, after).newly_broken == ("a.py::one", "b.py::three")

    def test_takes_a_file_that_cannot_be_imported_any_more_for_the_tests_in_it(self) -> None:
        after = SuiteReport({"a.py": Outcome.ERROR, "b.py::three": Outcome.PASSED})
        assert compare(BASE, after) == Comparison(
            newly_broken=("a.py::one", "a.py::two"), failing_still=("a.py::old", "a.py::wrong"), asked=5
        )

    def test_knows_the_tests_of_a_file_that_could_not_be_imported_before(self) -> None:
        base = SuiteReport({"a.py": Outcome.ERROR, "b.py::three": Outcome.PASSED})
        after = report({"a.py::old": "assert 0"}, ["a.py::one", "b.py::three"])
        assert compare(base, after) == Comparison(fixed=("a.py::one",), failing_still=("a.py::old",), asked=3)

    def test_keeps_failures_of_tests_that_the_base_state_does_not_run_apart(self) -> None:
        base = ends(one=Outcome.SKIPPED)
        after = ends(one=Outcome.FAILED, own=Outcome.FAILED)
        assert compare(base, after) == Comparison(new_failures=("a.py::one", "a.py::own"), asked=2)

    def test_counts_what_was_not_run_as_neither_broken_nor_passing(self) -> None:
        slow = SuiteReport(
            {"a.py::one": Outcome.TIMEOUT, "a.py::two": Outcome.SKIPPED},
            complete=False,
            messages={"a.py::two": "not run: too many tests before it ran out of time"},
        )
        assert compare(BASE, slow) == Comparison(newly_broken=("a.py::one",), asked=2, not_run=1)

    def test_of_a_run_that_is_not_valid_is_empty(self) -> None:
        assert compare(BASE, SuiteReport({"a.py::one": Outcome.FAILED}, valid=False)) == Comparison()


NUMBERS = (
    "Against the unchanged code: 1 test that failed passes now; 1 test that passed fails now; 1 failed before too."
)


def words(after: SuiteReport, base: SuiteReport = BASE) -> list[str]:
    return comparison_text(compare(base, after), after).split("\n")


class TestAModelIsTold:
    def test_numbers_then_what_is_broken_with_its_message_then_what_is_fixed(self) -> None:
        after = report({"a.py::old": "assert 0", "a.py::two": "assert 2\nis bad"}, ["a.py::wrong", *BASE.passes[::2]])
        assert words(after) == [NUMBERS, "Newly broken: a.py::two", "  assert 2", "  is bad", "Fixed: a.py::wrong"]

    def test_that_nothing_changed(self) -> None:
        assert words(report(passes=["t"]), report(passes=["t"])) == [
            "Against the unchanged code: no test that passed fails now."
        ]

    def test_five_messages_then_twenty_names_then_a_number(self) -> None:
        names = [f"a.py::t{n}" for n in range(30)]
        said = words(report(dict.fromkeys(names, "assert 0")), report(passes=names))
        assert said[1:11] == [line for name in names[:5] for line in (f"Newly broken: {name}", "  assert 0")]
        assert said[11:] == [f"Newly broken too: {', '.join(names[5:25])} and 5 more"]

    def test_once_of_a_file_that_cannot_be_imported_any_more(self) -> None:
        after = SuiteReport(
            {"a.py": Outcome.ERROR, "b.py::three": Outcome.PASSED}, messages={"a.py": "SyntaxError: invalid syntax"}
        )
        assert words(after)[1:] == [
            "Newly broken: a.py cannot be imported, and 2 tests in it",
            "  SyntaxError: invalid syntax",
        ]

    def test_of_tests_that_are_gone_or_skipped_now(self) -> None:
        after = SuiteReport({"a.py::one": Outcome.SKIPPED, "a.py::two": Outcome.PASSED})
        assert words(after)[1:] == [
            "Newly broken: a.py::one (skipped now)",
            "Newly broken: b.py::three (not there any more)",
        ]

    def test_that_a_run_was_stopped_early_and_why(self) -> None:
        after = replace(report({"a.py::one": "", "a.py::two": ""}), complete=False, left_out=134)
        assert "The run was stopped after 2 newly broken tests; 134 of the 136 tests were not run." in words(after)
        slow = SuiteReport(
            {"a.py::one": Outcome.TIMEOUT, "a.py::two": Outcome.SKIPPED},
            complete=False,
            messages={"a.py::two": "not run: too many tests before it ran out of time"},
        )
        assert "The run was stopped after 1 test had run out of time; 1 of the 2 tests was not run." in words(slow)

    def test_that_a_strict_expected_failure_passes_now(self) -> None:
        after = replace(report(passes=["t"]), unexpected=("t",))
        assert words(after, report(passes=["t"]))[1:] == [
            "Passes now although it is marked xfail(strict), which counts as fixed: t"
        ]

    def test_only_why_when_the_run_does_not_count(self) -> None:
        after = SuiteReport({"a.py::one": Outcome.FAILED}, valid=False, problem="no tests were collected")
        assert words(after) == ["This run counts as failed: no tests were collected"]
