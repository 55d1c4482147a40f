"""The messages that a model reads before it answers: the task, the state of its work, and earlier attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from agent.actions import RunTests, Submit
from agent.actions.excerpt import OBSERVATION_BYTES, excerpt
from agent.measure import SuiteReport
from agent.measure.regressions import regressions
from agent.models import Message
from agent.models.answers import system_and_user
from agent.policy import Position, Tried
from agent.policy.chat.conventions import Convention, cut
from agent.policy.chat.variation import ANGLES, Variation
from agent.prompts import digest, names, render
from agent.run.grade import declared
from agent.run.tree.choice import REPAIR, REPRODUCTION
from agent.run.tree.node import Node
from agent.task import Task
from agent.untrusted import fence, issue_text, terminal_text, visible

_PROMPTS = (*(name for name in names() if name.startswith("chat_")), *ANGLES, "mend")
ISSUE_BYTES = 60_000
NOTE_BYTES = 1_000
CHANGES_BYTES = 3_000
"""The most bytes shown of an earlier attempt's patch."""
OUTCOME_BYTES = 3_000
"""The most bytes of what the tests and a judge say about a state."""
ISSUE_SHARE = 0.25
"""The share of the context for the issue."""
RESULT_SHARE = 0.2
"""The share of the context for all results of one turn."""
CONVENTIONS_SHARE = 0.5
"""In a short context: the most that conventions take, as a share of the room for the issue."""
TURNS = 100
"""The default number of turns of a line of work."""
FAILURES = 3
"""How many goal tests are shown with their messages."""
GOALS = 20
FAILED_BEFORE = 5
"""How many tests are named that failed before and are not goals."""
ATTEMPTS = 3
TURNS_LEFT = (15, 5)
"""The numbers of turns left at which a model is reminded of them."""


def opening(
    position: Position, instructions: str = "", context_bytes: int | None = None, turns: int = TURNS
) -> list[Message]:
    """The two messages that begin every conversation about a task. They do not depend on the node, so a provider can
    cache them.

    `instructions`: how to call the tools, if the API does not tell the model. `context_bytes`: the size of the model's
    context; None: unknown. `turns`: the number of turns that the model has.
    """
    report, conventions = position.path[0].report, position.conventions()
    workdir, layout = position.box.workdir, position.layout()
    return introduction(position.task, report, workdir, instructions, context_bytes, turns, conventions, layout)


def introduction(
    task: Task,
    report: SuiteReport,
    workdir: str,
    instructions: str = "",
    context_bytes: int | None = None,
    turns: int = TURNS,
    conventions: Sequence[Convention] = (),
    layout: str = "",
) -> list[Message]:
    """As `opening`, for a task whose base state has this report; `workdir` is the workspace's path in the sandbox."""
    by_parts = bool(report.late) or report.first is not None
    issue_bytes = None if context_bytes is None else int(context_bytes * ISSUE_SHARE)
    issue = excerpt(issue_text(task.statement), min(ISSUE_BYTES, issue_bytes or ISSUE_BYTES))[0]
    shown = [(test, _printed(report.messages.get(test, ""))) for test in task.goal_tests[:FAILURES]]
    failures = [{"test": visible(test), "message": message} for test, message in shown if message]
    first = report.at_first  # the beginning stays the same to the byte, even when the report grows later
    failed = [visible(test) for test in first.failures if test not in first.flaky]
    text = render(
        "chat_task",
        workdir=workdir,
        layout=visible(layout),
        tested=bool(first.outcomes or by_parts),
        by_parts=by_parts,
        test_command=task.test_command,
        problem=visible(report.problem or "there are none").rstrip("."),
        issue=issue,
        fence=fence("issue", issue),
        goal_tests=[visible(test) for test in task.goal_tests[:GOALS]],
        more_goals=len(task.goal_tests[GOALS:]),
        failures=failures,
        tests_fence=fence("tests", str(failures)),
        tests=len(first.outcomes),
        failed_before=len(failed),
        failed_names=failed[:FAILED_BEFORE],
        suite_s=max(1, round(report.duration_s)),
        turns=turns,
        output_bytes=f"{OBSERVATION_BYTES:,}",
        answer_bytes="" if context_bytes is None else f"{int(context_bytes * RESULT_SHARE):,}",
    )
    system = render("chat_system") + _user_instructions(task) + instructions
    text += _repository_conventions(conventions, issue_bytes)
    return system_and_user(system, text)


def _user_instructions(task: Task) -> str:
    """The person's own instructions, for the system prompt; empty if there are none."""
    text = task.instructions.strip()
    return "\n\n" + render("chat_instructions", instructions=text).strip() if text else ""


def _repository_conventions(files: Sequence[Convention], issue_bytes: int | None) -> str:
    """The repository's own conventions, for the end of the first user message; empty if there are none."""
    if not files:
        return ""
    shown = files if issue_bytes is None else cut(files, int(issue_bytes * CONVENTIONS_SHARE))
    marked = fence("conventions", "\n".join(file.text for file in shown))
    return "\n\n" + render("chat_conventions", files=shown, fence=marked).strip()


def remembered(position: Position, most_bytes: int | None) -> list[Message]:
    """Lessons from repairs of other issues, before the first turn of an expansion; no message if there are none.
    `most_bytes`: their size limit if the context is short."""
    text = position.recall()
    text = text if most_bytes is None else excerpt(text, most_bytes)[0]
    return [_user("chat_memory", remembered=text, fence=fence("memory", text))] if text else []


def situation(
    position: Position, *, reflect: bool = False, variation: Variation | None = None, plan: str = ""
) -> list[Message]:
    """The message before the first turn from a node: the node's results, earlier attempts, and a person's hint; no
    message if there is nothing to say. Attempts are independent: the model sees only those that tests show wrong.

    `reflect`: below the root, ask the model to think again first. `variation` and `plan`: how to begin and what to
    follow, unless a strategy or a person says so.
    """
    carry_out = position.kind == "solution"
    actions = [action for step in position.node.steps[-1:] for action in step.actions]
    seen = any(isinstance(action, (RunTests, Submit)) for action in actions) and not position.node.submitted
    measured = _outcome(position.node) if len(position.path) > 1 and not carry_out and not seen else ""
    opinions = opinion(position) if seen else []
    wrong = [attempt for attempt in position.tried if shown_wrong(attempt, position.task, position.path[0].report)]
    tried = [_account(attempt) for attempt in wrong[-ATTEMPTS:]]
    told = {attempt.node.state_hash for attempt in wrong[-ATTEMPTS:] if attempt.node}
    references = [_account(each) for each in position.references if each.node and each.node.state_hash not in told]
    hint = visible(position.hint)
    angle = render("chat_variation", **asdict(variation)) if variation else ""
    begin = "" if carry_out or hint else "\n".join(filter(None, (angle, plan, _first_a_test(position))))
    if not (carry_out or measured or tried or references or hint or begin):
        return opinions
    message = _user(
        "chat_position",
        carry_out=carry_out,
        measured=measured,
        fused=position.node.kind == "fuse",
        tried=tried,
        references=references,
        hint=hint,
        begin=begin,
        diagnosed=position.kind == REPAIR,
        reflect=reflect and bool(measured),
    )
    return [*opinions, message]


def _first_a_test(position: Position) -> str:
    """The text that asks a line of work to begin with a test; empty if goal tests show the issue already."""
    wanted = position.kind == REPRODUCTION and not position.task.goal_tests
    return render("chat_reproduce").strip() if wanted else ""


def opinion(position: Position) -> list[Message]:
    """The judges' opinion of the state that the conversation has just reached, if there is one."""
    text = position.node.evaluation.opinion
    new = len(position.path) > 1 and position.node.state_hash != position.path[-2].state_hash
    return [{"role": "user", "content": _printed(text, OUTCOME_BYTES)}] if text and new else []


def results_message(node: Node) -> Message:
    """The part of `situation` that reports the results of the node, for a first turn from there."""
    others = {"carry_out": False, "tried": [], "references": [], "hint": "", "begin": "", "diagnosed": False}
    return _user("chat_position", measured=_outcome(node), fused=node.kind == "fuse", reflect=False, **others)


def wanted_strategy(position: Position) -> list[Message]:
    """The question for a strategy in words that differs from those proposed before."""
    proposed = [child.label for child in position.siblings]
    return [_user("chat_strategy", proposed=proposed, hint=visible(position.hint))]


def shown_wrong(tried: Tried, task: Task, base: SuiteReport) -> bool:
    """Whether tests show that an earlier attempt is wrong: a known goal still fails, or it broke a test and does not
    declare that it contradicts the issue."""
    node = tried.node
    if node is None or node.evaluation.solved:
        return False
    broken = regressions(base, node.report) if node.evaluation.harm else ()
    undeclared = node.evaluation.harm > 0 and len(declared(node.submission, broken)) < max(1, len(broken))
    return bool(task.goal_tests) or undeclared or node.evaluation.tampered or node.refused


def turns_left(left: int) -> list[Message]:
    """The reminder of how many turns are left, at the numbers in `TURNS_LEFT`."""
    return [_user("chat_turns_left", left=left)] if left in TURNS_LEFT else []


def repeating(count: int, *, last: bool) -> list[Message]:
    """The warning that the model has repeated itself `count` times; `last`: once more ends its line of work."""
    return [_user("chat_repeats", times=count, last=last)]


def version() -> str:
    """A digest of the prompts: it changes whenever their wording does."""
    return digest(*_PROMPTS)


def _user(prompt: str, **values: object) -> Message:
    return {"role": "user", "content": render(prompt, **values)}


def _account(tried: Tried) -> dict[str, object]:
    """What the attempt did, what it changed, and its test results."""
    return {
        "what": tried.label or "an attempt",
        "changes": visible(excerpt(tried.changes.strip(), CHANGES_BYTES)[0]),
        "outcome": _outcome(tried.node) if tried.node else "",
        "refused": tried.node is not None and tried.node.refused,
    }


def _outcome(node: Node) -> str:
    return _printed(node.evaluation.notes, OUTCOME_BYTES)


def _printed(text: str, most_bytes: int = NOTE_BYTES) -> str:
    """Test output in visible form, cut to the size of a note."""
    return excerpt(visible(terminal_text(text)), most_bytes)[0]
