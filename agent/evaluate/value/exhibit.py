"""The text that a judge sees: first the issue, which is the same for every candidate, then the candidate.

Invariant: all untrusted text (the issue, the change, the output of tests) is enclosed in fences and cut to a limit:
head and tail remain, with the number of omitted bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.actions.excerpt import excerpt, printable
from agent.evaluate.value import EvaluationInput
from agent.measure import SuiteReport
from agent.measure.regressions import regressions
from agent.models import Message
from agent.models.answers import system_and_user
from agent.prompts import render
from agent.run.grade import declared
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node
from agent.task import Task
from agent.untrusted import fence, issue_text, terminal_text, visible

ISSUE_BYTES = 30_000
PATCH_BYTES = 40_000
CONTEXT = 10
"""How many unchanged lines a judge sees around each change: the decisive code may be a few lines away."""
NOTES_BYTES = 6_000
SPEECH_BYTES = 8_000
ASSESSMENT_BYTES = 2_000
"""The longest opinion that is kept."""


def issue_messages(case: EvaluationInput, question: str, length: float = 1.0) -> list[Message]:
    """A question about the issue alone. `length`, in (0, 1], scales all limits."""
    return _conversation(shown_issue(case.task, length), question)


def case_messages(case: EvaluationInput, tests: Evaluation, question: str, length: float = 1.0) -> list[Message]:
    """A question about a candidate with this evaluation by tests; `length` as in `issue_messages`."""
    before, after, patch = case.path[0].report, case.report, case.patch(context=CONTEXT)
    reasons = declared(case.submission, regressions(before, after))
    texts = {"own_tests": case.own_tests, "contradicted": "\n".join(f"{test}: {why}" for test, why in reasons.items())}
    candidate = shown_candidate(before, after, patch, tests.notes, length, **texts)
    return _conversation(f"{shown_issue(case.task, length)}\n\n{candidate}", question)


def shown_candidate(
    before: SuiteReport,
    after: SuiteReport,
    patch: bytes,
    notes: str,
    length: float = 1.0,
    *,
    own_tests: str = "",
    contradicted: str = "",
) -> str:
    """A change against the base state, whose report is `before`, and what tests say about it, as counts and in words.
    `own_tests`: what the tests that the change adds showed (`EvaluationInput.own_tests`). `contradicted`: the broken
    tests that its author says the issue contradicts, with the reasons."""
    texts = {"details": notes, "own_tests": own_tests, "contradicted": contradicted}
    tests = {
        name: text and fenced("tests", terminal_text(text), int(NOTES_BYTES * length)) for name, text in texts.items()
    }
    change = fenced("change", printable(patch), int(PATCH_BYTES * length))
    same = ": the same ones" if before.failures and {*before.failures} == {*after.failures} else ""
    found = {"before": counts(before), "after": counts(after) + same}
    run = {"partial": not after.complete, "scope": visible(after.scope)}
    return render("judge_candidate", patch=change, **found, **run, **tests)


def unmeasured_messages(case: EvaluationInput, length: float = 1.0) -> list[Message]:
    """A question about a candidate whose tests have not been run; `length` as in `issue_messages`."""
    change = fenced("change", printable(case.patch()), int(PATCH_BYTES * length))
    question = render("foresight", patch=change, before=counts(case.report))
    return _conversation(shown_issue(case.task, length), question)


def ranking_messages(case: EvaluationInput, others: Sequence[Node], names: str, length: float = 1.0) -> list[Message]:
    """A question about a candidate and others that were made from the same state, all by their changes alone; the last
    name is the candidate's. `length` as in `issue_messages`."""
    patches = [*map(case.patch_of, others), case.patch()]
    room = int(PATCH_BYTES * length) // len(patches)
    shown = zip(names, patches, strict=True)
    changes = [(name, fenced(f"change-{name}", printable(patch), room)) for name, patch in shown]
    return _conversation(shown_issue(case.task, length), render("foresight_ranking", changes=changes))


def fenced(name: str, text: str, limit: int) -> str:
    """A text between two unpredictable lines, without invisible characters, cut to `limit` bytes."""
    shown = visible(excerpt(text, limit)[0])
    tag = fence(name, shown)
    return f"<{tag}>\n{shown}\n</{tag}>"


def speech(name: str, text: str) -> str:
    """A speech of a debate, for the model that judges it."""
    return fenced(f"speech-{name}", text, SPEECH_BYTES)


def assessment(text: str) -> str:
    """A model's text in the form that is kept and shown to other models."""
    return visible(excerpt(text.strip(), ASSESSMENT_BYTES)[0])


def shown_issue(task: Task, length: float = 1.0) -> str:
    """The first part of every question: the issue, with `length` as in `issue_messages`, and the goal tests."""
    statement = issue_text(task.statement) or "(no text: the failing tests say what is wrong)"
    goals = [visible(test) for test in task.goal_tests]
    return render("judge_issue", issue=fenced("issue", statement, int(ISSUE_BYTES * length)), goal_tests=goals)


def counts(report: SuiteReport) -> str:
    """How many tests pass and fail."""
    return f"{len(report.passes)} pass, {len(report.failures)} fail"


def _conversation(shown: str, question: str) -> list[Message]:
    return system_and_user(render("judge_system"), f"{shown}\n\n{question}")
