"""Composes the answers to `run_tests` and `submit`: how the tests differ from the unchanged code, and the change
itself.

Invariants: a `submit` is answered with a review at most once a conversation, and only if there is something that the
model has not seen: its diff, or a test that it broke. Nothing is shown twice in one conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.actions import Action, Observation, RunTests, Submit, as_call
from agent.actions.comparison import comparison_text
from agent.actions.excerpt import excerpt, printable
from agent.budget import Usage
from agent.evaluate.references import Site, Tracked, tracked
from agent.evaluate.reproduction import Finding
from agent.evaluate.scorer import StagedScorer
from agent.measure import Outcome, SuiteReport
from agent.measure.comparison import compare
from agent.measure.regressions import regressions
from agent.prompts import render
from agent.run.grade import declared
from agent.run.tree.node import Step
from agent.task import Task
from agent.untrusted import terminal_text
from sandboxes import Provider, Snapshot

_NOT_SUBMITTED = "Not submitted: "

DIFF_BYTES = 8_000
MESSAGE_BYTES = 1_500
FAILURES = 5
"""How many failing tests are shown with their messages."""
NAMED = 20
_COUNTED = {Outcome.ERROR: "failed", Outcome.TIMEOUT: "failed"}
QUICK_S = 60.0
"""A suite that takes no longer than this runs in addition to the requested tests."""


def not_submitted(done: Sequence[tuple[Action, Observation]]) -> Observation:
    """Refuse a `submit` because an earlier call in the same answer failed; the message names the last such call."""
    failed = [as_call(action)[0] for action, seen in done if not seen.ok]
    named = f"`{failed[-1]}`, which was called before it in this answer,"
    call = named if failed else "a call before it in this answer"
    return Observation(f"{_NOT_SUBMITTED}{call} did not succeed. Submit again when the work is done.", ok=False)


@dataclass(frozen=True, slots=True)
class Feedback:
    """Answers `run_tests` and `submit` in one line of work."""

    task: Task
    provider: Provider
    base: Snapshot
    baseline: SuiteReport
    scorer: StagedScorer
    spend: Callable[[Usage], None]
    turns: Sequence[Step]
    """All turns of the conversation before the one that asks."""
    track: bool = False
    """Whether the answers say what is left to do in a refactoring."""
    _found: dict[str, Tracked] = field(default_factory=dict, init=False, repr=False)
    """The progress of a refactoring, by the digests of states: `run_tests` and `submit` in one answer look at the same
    state."""

    def tested(self, state: Snapshot, tests: tuple[str, ...], answered: Sequence[Observation] = ()) -> Observation:
        """Run these tests, or all of them if the suite is quick or none is named, and describe the results and the part
        of the diff that the model has not seen. `answered`: the results of the calls before it in the same answer.

        Raises:
            agent.errors.MeasureError: they cannot be run.
        """
        parts, ok = list[str](), True
        if tests:
            named = self._run(state, tests)
            parts.append(_counts(named))
            parts += _failures(named, named.failures)
            ok = named.valid and not named.failures
        if tests and (self.baseline.late or self.baseline.duration_s > QUICK_S):
            longer = "more than " if self.baseline.late else ""
            parts.append(
                f"Only these tests were run: all tests take {longer}{self.baseline.duration_s:.0f} s. When the change "
                "is ready, call `run_tests` without ids: it runs the tests that the change can reach."
            )
            return Observation("\n".join(parts), ok=ok)
        report = self._run(state, ())
        finding = self._finding(state, report)
        parts += self._facts(state, report, finding, whole=not tests)
        ok = ok and report.valid and not regressions(self.baseline, report) and not self._open_goals(report)
        diff = self._diff(state)
        if unseen := self._unseen(diff, _texts(answered)):
            parts.append(f"What you have not seen of your change so far:\n\n{_shown(unseen)}\n")
        parts += self._progress(self._tracked(state))
        parts.append(self._what_is_left(report, finding, changed=bool(diff)))
        return Observation("\n".join(parts), ok=ok)

    def submitted(self, state: Snapshot, submit: Submit, answered: Sequence[Observation] = ()) -> Observation:
        """Accept the work, or answer with a review (not `ok`): the first time, if there is something to see.
        `answered`: what the calls before it in the same answer did, which the model has not seen yet."""
        diff = self._diff(state)
        if self._reviewed():
            return Observation("Submitted." if diff else "Submitted without a change.")
        if not diff:
            return Observation(render("chat_review", changed=False, diff="", facts="", undeclared=()), ok=False)
        report = self._run(state, ())
        broken = regressions(self.baseline, report)
        known = declared(submit, broken)
        undeclared = [test for test in broken if test not in known and not self._told_broken(test)]
        above = _texts(answered)
        found = self._tracked(state)
        progress = self._progress(found)
        sure = [site for site in found.sites if site.sure] if found is not None else []
        left = any(not self._was_shown(place) and place not in above for place in _listed(sure))
        unseen = self._unseen(diff, above)
        if not unseen and not undeclared and report.valid and not left:
            return Observation("Submitted.")
        facts = (*self._facts(state, report, self._finding(state, report), whole=True), *progress)
        text = render(
            "chat_review",
            changed=True,
            diff=_shown(unseen),
            facts="\n".join(fact for fact in facts if fact not in above),
            undeclared=undeclared[:NAMED],
        )
        return Observation(text, ok=False)

    def may_submit(self, state: Snapshot, submit: Submit, done: Sequence[tuple[Action, Observation]]) -> bool:
        """Whether a `submit` counts although calls before it in the same answer failed: only if each of these is a run
        of all tests whose only failures the `submit` declares to contradict the issue."""
        failed = [action for action, seen in done if not seen.ok]
        if not all(isinstance(action, RunTests) and not action.tests for action in failed):
            return False
        if not failed:
            return True
        report = self._run(state, ())
        broken = regressions(self.baseline, report)
        return report.valid and not self._open_goals(report) and len(declared(submit, broken)) == len(broken)

    def _reviewed(self) -> bool:
        """Whether a `submit` of the conversation was answered with a review."""
        submits = (seen.text for action, seen in self._answers() if isinstance(action, Submit))
        return any(not text.startswith(_NOT_SUBMITTED) for text in submits)

    def _run(self, state: Snapshot, tests: tuple[str, ...]) -> SuiteReport:
        report, runs = self.scorer.run_tests(state, tests)
        self.spend(Usage(measurements=runs))
        return report

    def _finding(self, state: Snapshot, report: SuiteReport) -> Finding | None:
        """Return what the tests that the model added show."""
        finding, runs = self.scorer.reproduction(state, report)
        self.spend(Usage(measurements=runs))
        return finding

    def _facts(self, state: Snapshot, report: SuiteReport, finding: Finding | None, *, whole: bool) -> list[str]:
        """The results of a run of the whole suite, and of the tests that the model added."""
        if not (report.outcomes or self.baseline.outcomes):
            return ["There are no tests to run."]
        if report.valid and report.scope and not report.outcomes:
            parts = [f"None of the repository's own tests was run: {report.scope.partition(': ')[2]}."]
            return parts if finding is None else [*parts, _printed(finding.text)]
        counts = _counts(report)
        parts = [counts if whole else f"The repository's own tests: {counts}"]
        if put_back := self.scorer.put_back(state):
            names = ", ".join(put_back[:NAMED])
            were = "was" if len(put_back) == 1 else "were"
            parts.append(f"In this run, {names} {were} as before your change; your version stays in the patch.")
        parts.append(_printed(comparison_text(compare(self.baseline, report), report)))
        if not report.valid and report.output:
            parts.append(f"The end of what was printed:\n{_printed(report.output)}")
        if goals := self.task.goal_tests:
            still = self._open_goals(report)
            parts.append(f"Goal tests: {len(goals) - len(still)} of {len(goals)} pass.")
            parts += _failures(report, still)
        if finding is None:
            return parts
        return [*parts, _printed(finding.text if whole else finding.headline or finding.text)]

    def _tracked(self, state: Snapshot) -> Tracked | None:
        """The progress of a refactoring; None if it is not tracked, or nothing was changed."""
        if not self.track or state.digest == self.base.digest:
            return None
        if state.digest not in self._found:
            self._found[state.digest] = tracked(self.provider, self.base, state)
        return self._found[state.digest]

    def _progress(self, found: Tracked | None) -> list[str]:
        if found is None:
            return []
        sure, unsure = ([each for each in found.sites if each.sure is known] for known in (True, False))
        places = {"places": _listed(sure), "more": len(sure[NAMED:])}
        likely = {"likely": _listed(unsure), "more_likely": len(unsure[NAMED:])}
        return [_printed(render("chat_references", changed=found.changed[:NAMED], **places, **likely).strip())]

    def _open_goals(self, report: SuiteReport) -> list[str]:
        return [test for test in self.task.goal_tests if not report.passed(test)]

    def _what_is_left(self, report: SuiteReport, finding: Finding | None, *, changed: bool) -> str:
        if not changed:
            return "The repository is unchanged so far."
        if finding is not None and finding.alone:
            return "Only tests are changed so far: now make the change that the issue asks for."
        if not report.valid or self._open_goals(report):
            return "The work is not done yet."
        if finding is not None and finding.failing:
            return "A test of your own fails: correct the change, or the test."
        compared = compare(self.baseline, report)
        return render("chat_left", broken=bool(compared.newly_broken), goals=bool(self.task.goal_tests)).strip()

    def _diff(self, state: Snapshot) -> str:
        if state.digest == self.base.digest:
            return ""
        return printable(self.provider.diff(self.base, state)).strip()

    def _unseen(self, diff: str, more: str = "") -> str:
        """Return the part of a diff that the model has not seen: hunks with new lines (for pure removals, the removed
        lines) that no diff and no result of an edit has shown. Files that the model wrote itself count as seen. `more`:
        text that is about to be shown."""
        unseen = list[str]()
        for file in re.split(r"(?m)^(?=diff --git )", diff)[1:]:
            head, *hunks = re.split(r"(?m)^(?=@@)", file)
            if "\n--- /dev/null" not in head:
                new = [
                    hunk for hunk in hunks if not all(line in more or self._was_shown(line) for line in _telling(hunk))
                ]
                unseen += [head, *new] if new else []
        return "".join(unseen)

    def _was_shown(self, text: str) -> bool:
        return any(text in seen.text for _, seen in self._answers())

    def _told_broken(self, test: str) -> bool:
        """Whether the model has read that a test which passed before now fails. A mere name in a list does not tell it
        that."""
        return any(
            f"FAILED {test}" in seen.text
            or (isinstance(action, (RunTests, Submit)) and not seen.ok and test in seen.text)
            for action, seen in self._answers()
        )

    def _answers(self) -> Iterator[tuple[Action, Observation]]:
        """All actions of the conversation with their observations."""
        return (pair for step in self.turns for pair in zip(step.actions, step.observations, strict=False))


def _listed(sites: Sequence[Site]) -> list[str]:
    return [f"{site.path}:{site.line}: {site.name}" for site in sites[:NAMED]]


def _texts(answered: Sequence[Observation]) -> str:
    return "\n".join(seen.text for seen in answered)


def _telling(hunk: str) -> list[str]:
    """Return the lines that identify a hunk, as a diff shows them: the new lines, or the removed ones if none is
    new."""
    lines = hunk.split("\n")[1:]
    return [line[1:].strip() for line in lines if line.startswith("+")] or [x for x in lines if x.startswith("-")]


def _shown(diff: str) -> str:
    return excerpt(re.sub(r"(?m)^index .*\n", "", diff), DIFF_BYTES)[0]


def _counts(report: SuiteReport) -> str:
    counts = Counter(_COUNTED.get(outcome, outcome.value) for outcome in report.outcomes.values())
    numbers = ", ".join(f"{number} {name}" for name, number in counts.items()) or "no test was run"
    how = f" (`{report.command}`)" if report.command else ""
    return f"{numbers} in {report.duration_s:.1f} s{how}."


def _failures(report: SuiteReport, tests: Sequence[str]) -> list[str]:
    lines = list[str]()
    for test in tests[:FAILURES]:
        outcome = report.outcome(test)
        message = excerpt(report.messages.get(test, "").strip(), MESSAGE_BYTES)[0]
        lines.append(f"{outcome.value.upper() if outcome else 'NOT RUN'} {test}\n{message}".rstrip())
    if len(tests) > FAILURES:
        lines.append(f"... and {len(tests) - FAILURES} more: {', '.join(tests[FAILURES : FAILURES + NAMED])}")
    return [_printed(line) for line in lines]


def _printed(text: str) -> str:
    return printable(terminal_text(text).encode("utf-8", "surrogateescape"))
