"""What a judge is shown of a case: the issue first, which is the same for every candidate, then the candidate.

Law: all that strangers wrote (the issue, the change, the output of tests) stands between fences and is cut to a limit,
head and tail, with the number of bytes that are missing.
"""

from __future__ import annotations

from agent.actions.excerpt import excerpt, printable
from agent.evaluate.value import EvaluationInput
from agent.models import Message
from agent.prompts import render
from agent.run.tree.evaluation import Evaluation
from agent.task import Task
from agent.untrusted import fence, issue_text, terminal_text, visible

__all__ = ["ASSESSMENT_BYTES", "assessment", "case_messages", "fenced", "issue_messages", "shown_issue"]

ISSUE_BYTES = 30_000
PATCH_BYTES = 40_000
NOTES_BYTES = 6_000
ASSESSMENT_BYTES = 2_000
"""The longest opinion that is kept."""


def issue_messages(case: EvaluationInput, question: str, length: float = 1.0) -> list[Message]:
    """A question about the issue alone. `length` is the share of each limit that is made use of, in (0, 1]."""
    return _conversation(shown_issue(case.task, length), question)


def case_messages(case: EvaluationInput, tests: Evaluation, question: str, length: float = 1.0) -> list[Message]:
    """A question about a candidate, of which the tests say this; `length` as above."""
    patch = fenced("change", printable(case.patch()), int(PATCH_BYTES * length))
    before, after = (
        f"{len(report.passes)} pass, {len(report.failures)} fail" for report in (case.path[0].report, case.report)
    )
    details = fenced("tests", terminal_text(tests.notes), int(NOTES_BYTES * length)) if tests.notes else ""
    candidate = render("judge_candidate", patch=patch, before=before, after=after, details=details)
    return _conversation(f"{shown_issue(case.task, length)}\n\n{candidate}", question)


def fenced(name: str, text: str, limit: int) -> str:
    """A text between two lines that nobody could have foreseen, with no invisible characters, cut to `limit` bytes."""
    shown = visible(excerpt(text, limit)[0])
    tag = fence(name, shown)
    return f"<{tag}>\n{shown}\n</{tag}>"


def assessment(text: str) -> str:
    """A model's words as they are kept and shown to other models."""
    return visible(excerpt(text.strip(), ASSESSMENT_BYTES)[0])


def shown_issue(task: Task, length: float = 1.0) -> str:
    """What a judge is shown first: the issue, of which `length` is as above, and the tests that have to pass."""
    statement = issue_text(task.statement) or "(no text: the failing tests say what is wrong)"
    goals = [visible(test) for test in task.goal_tests]
    return render("judge_issue", issue=fenced("issue", statement, int(ISSUE_BYTES * length)), goal_tests=goals)


def _conversation(shown: str, question: str) -> list[Message]:
    return [
        {"role": "system", "content": render("judge_system")},
        {"role": "user", "content": f"{shown}\n\n{question}"},
    ]
