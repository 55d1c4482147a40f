"""Describes a test run to a model, compared with the unchanged code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.actions.excerpt import excerpt
from agent.counting import counted, first_of
from agent.measure import Outcome, SuiteReport
from agent.measure.comparison import Comparison
from agent.measure.ids import file_of

SHOWN = 5
"""How many tests are shown with their messages."""
NAMED = 20
"""How many further newly broken tests are listed by name."""
FIXED_NAMED = 5
MESSAGE_BYTES = 1_500


def comparison_text(comparison: Comparison, report: SuiteReport) -> str:
    """The result in words: counts first, then newly broken tests with their messages, then the names of fixed tests.
    Tests that failed before are only counted."""
    if not report.valid:
        return f"This run counts as failed: {report.problem}"
    parts = [f"These are {report.scope}."] if report.scope else []
    parts.append(_numbers(comparison))
    if late := sum(report.late.values()):
        parts.append(f"{counted(late, 'more test of them was', 'more tests of them were')} not run: the time was up.")
    if early := stopped_early(comparison, report):
        parts.append(early)
    parts += _failures("Newly broken", comparison.newly_broken, report)
    parts += _failures("New and failing", comparison.new_failures, report)
    if comparison.fixed:
        parts.append(f"Fixed: {first_of(comparison.fixed, FIXED_NAMED)}")
    if comparison.unexpected_passes:
        names = first_of(comparison.unexpected_passes, FIXED_NAMED)
        parts.append(f"Passes now although it is marked xfail(strict), which counts as fixed: {names}")
    return "\n".join(parts)


def stopped_early(comparison: Comparison, report: SuiteReport) -> str:
    """Why tests were not run, and how many; empty if all tests ran."""
    if not comparison.not_run:
        return ""
    if report.left_out:
        why = counted(len(comparison.newly_broken), "newly broken test")
    else:
        timeouts = sum(outcome is Outcome.TIMEOUT for outcome in report.outcomes.values())
        why = f"{counted(timeouts, 'test')} had run out of time"
    were = "was" if comparison.not_run == 1 else "were"
    return f"The run was stopped after {why}; {comparison.not_run} of the {comparison.asked} tests {were} not run."


def _numbers(comparison: Comparison) -> str:
    fixed, broken = len(comparison.fixed), len(comparison.newly_broken)
    still, new = len(comparison.failing_still), len(comparison.new_failures)
    parts = [counted(fixed, "test that failed passes now", "tests that failed pass now")] if fixed else []
    if broken:
        parts.append(counted(broken, "test that passed fails now", "tests that passed fail now"))
    else:
        parts.append("no test that passed fails now")
    if new:
        new_one = "that the unchanged code does not run"
        parts.append(counted(new, f"test {new_one} fails", f"tests {new_one} fail"))
    if still:
        parts.append(f"{still} failed before too")
    return f"Against the unchanged code: {'; '.join(parts)}."


def _failures(title: str, tests: Sequence[str], report: SuiteReport) -> Iterator[str]:
    """The first tests with their messages (one for a file that cannot be imported), then the names of others."""
    groups: dict[str, list[str]] = {}
    for test in tests:
        groups.setdefault(test if test in report.outcomes else _file(report, test), []).append(test)
    for group in list(groups)[:SHOWN]:
        yield f"{title}: {_named(group, groups[group], report)}"
        if message := excerpt(report.messages.get(group, "").strip(), MESSAGE_BYTES)[0]:
            yield "\n".join(f"  {line}".rstrip() for line in message.split("\n"))
    if others := [test for group in list(groups)[SHOWN:] for test in groups[group]]:
        yield f"{title} too: {first_of(others, NAMED)}"


def _file(report: SuiteReport, test: str) -> str:
    return file_of(test) if file_of(test) in report.outcomes else test


def _named(group: str, tests: Sequence[str], report: SuiteReport) -> str:
    if group not in report.outcomes:
        return f"{group} (not there any more)"
    if group != tests[0]:
        return f"{group} cannot be imported, and {counted(len(tests), 'test')} in it"
    return f"{group} (skipped now)" if report.outcomes[group] is Outcome.SKIPPED else group
