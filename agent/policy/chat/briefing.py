"""What a model is told before it answers: the task, where it stands, and what was tried there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from agent.actions import RunTests, Submit
from agent.actions.excerpt import OBSERVATION_BYTES, excerpt
from agent.measure import SuiteReport
from agent.models import Message
from agent.policy import Position, Tried
from agent.policy.chat.conventions import Convention
from agent.policy.chat.house_rules import repository_conventions, user_instructions
from agent.policy.chat.variation import ANGLES, Variation
from agent.prompts import digest, names, render
from agent.run.tree.choice import REPAIR
from agent.run.tree.tree import Node
from agent.task import Task
from agent.untrusted import fence, issue_text, terminal_text, visible

__all__ = [
    "TURNS",
    "introduction",
    "measured",
    "opening",
    "opinion",
    "remembered",
    "repeating",
    "shown_wrong",
    "situation",
    "turns_left",
    "version",
    "visible",
    "wanted_strategy",
]

_PROMPTS = (*(name for name in names() if name.startswith("chat_")), *ANGLES, "mend")
ISSUE_BYTES = 60_000
NOTE_BYTES = 1_000
CHANGES_BYTES = 3_000
"""Of what an earlier attempt changed."""
OUTCOME_BYTES = 3_000
"""Of what the tests and a judge say of a state."""
TURNS = 100
"""Of a line of work, where nothing else is said."""
FAILURES = 3
"""Goal tests whose message is told."""
GOALS = 20
FAILED_BEFORE = 5
"""Tests that are named of those that failed before, where they are no goals."""
ATTEMPTS = 3
TURNS_LEFT = (15, 5)
"""When a model is told how many turns are left."""


def opening(position: Position, manual: str = "", issue_bytes: int | None = None, turns: int = TURNS) -> list[Message]:
    """The two messages that every conversation about a task begins with; the same bytes wherever it is in the tree.
    `manual`: how to call the tools, where that has to be said. `issue_bytes`: room for the issue, if it is little.
    `turns`: how many there are."""
    report, conventions = position.path[0].report, position.conventions()
    workdir, layout = position.box.workdir, position.layout()
    return introduction(position.task, report, workdir, manual, issue_bytes, turns, conventions, layout)


def introduction(
    task: Task,
    report: SuiteReport,
    workdir: str,
    manual: str = "",
    issue_bytes: int | None = None,
    turns: int = TURNS,
    conventions: Sequence[Convention] = (),
    layout: str = "",
) -> list[Message]:
    """As `opening`, of a task whose base state has this report, in a workspace that is at `workdir` inside."""
    by_parts = bool(report.late) or report.first is not None
    issue = excerpt(issue_text(task.statement), min(ISSUE_BYTES, issue_bytes or ISSUE_BYTES))[0]
    shown = [(test, _printed(report.messages.get(test, ""))) for test in task.goal_tests[:FAILURES]]
    failures = [{"test": visible(test), "message": message} for test, message in shown if message]
    first = report.at_first  # what is told at the beginning stays the same to the byte
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
    )
    system = render("chat_system") + user_instructions(task) + manual
    told = text + repository_conventions(conventions, issue_bytes)
    return [{"role": "system", "content": system}, {"role": "user", "content": told}]


def remembered(position: Position, room_bytes: int | None = None) -> list[Message]:
    """What repairs of other issues taught that fits here, before the first turn of an expansion; nothing where nothing
    is known. `room_bytes`: room for it, if it is little."""
    text = position.recall()
    text = text if room_bytes is None else excerpt(text, room_bytes)[0]
    return [_user("chat_memory", remembered=text, fence=fence("memory", text))] if text else []


def situation(
    position: Position, *, reflect: bool = False, variation: Variation | None = None, plan: str = ""
) -> list[Message]:
    """What the first turn from a node is told of that node, of what was tried there and what a person wants; nothing
    when there is nothing to tell. Attempts are independent: one is told of those before it only where tests show that
    they are wrong. `reflect`: below the root, to think again before anything else. `variation` and `plan`: how to begin
    and what to follow where neither a strategy nor a person says so."""
    carry_out = position.kind == "solution"
    seen = any(isinstance(action, (RunTests, Submit)) for step in position.node.steps[-1:] for action in step.actions)
    seen = seen and not position.node.submitted
    measured = _outcome(position.node) if len(position.path) > 1 and not carry_out and not seen else ""
    heard = opinion(position) if seen else []
    wrong = [each for each in position.tried if shown_wrong(each, position.task)]
    tried = [_account(each) for each in wrong[-ATTEMPTS:]]
    hint = visible(position.hint)
    angle = render("chat_variation", **asdict(variation)) if variation else ""
    begin = "" if carry_out or hint else "\n".join(filter(None, (angle, plan)))
    if not (carry_out or measured or tried or hint or begin):
        return heard
    fused = position.node.kind == "fuse"
    told = {"carry_out": carry_out, "measured": measured, "fused": fused, "tried": tried, "hint": hint, "begin": begin}
    diagnosed = position.kind == REPAIR
    return [*heard, _user("chat_position", **told, diagnosed=diagnosed, reflect=reflect and bool(measured))]


def opinion(position: Position) -> list[Message]:
    """What models said of the state that a conversation has just come to, where they did."""
    said = position.node.evaluation.opinion
    new = len(position.path) > 1 and position.node.state_hash != position.path[-2].state_hash
    return [{"role": "user", "content": _printed(said, OUTCOME_BYTES)}] if said and new else []


def measured(node: Node) -> Message:
    """What a first turn is told of the state that it goes on from, and of nothing else."""
    fused = node.kind == "fuse"
    told = {"carry_out": False, "measured": _outcome(node), "fused": fused, "tried": [], "hint": "", "begin": ""}
    return _user("chat_position", **told, diagnosed=False, reflect=False)


def wanted_strategy(position: Position) -> list[Message]:
    """What is asked of the model where the search wants a strategy: words, and other ones than before."""
    proposed = [child.label for child in position.siblings]
    return [_user("chat_strategy", proposed=proposed, hint=visible(position.hint))]


def shown_wrong(tried: Tried, task: Task) -> bool:
    """Whether tests show that an earlier attempt is not right: a known goal still fails, or it broke something."""
    if tried.node is None or tried.node.evaluation.solved:
        return False
    evaluation = tried.node.evaluation
    return bool(task.goal_tests) or evaluation.harm > 0 or evaluation.tampered or tried.node.refused


def turns_left(left: int) -> list[Message]:
    """What a model is told that has so many turns left, where that is worth a word."""
    return [_user("chat_turns_left", left=left)] if left in TURNS_LEFT else []


def repeating(count: int, *, last: bool) -> list[Message]:
    """What a model is told that has done the same so many times in a row; `last`: once more ends its line of work."""
    return [_user("chat_repeats", times=count, last=last)]


def version() -> str:
    """Changes whenever the wording of a prompt does."""
    return digest(*_PROMPTS)


def _user(prompt: str, **values: object) -> Message:
    return {"role": "user", "content": render(prompt, **values)}


def _account(tried: Tried) -> dict[str, object]:
    """What was done, what it changed, and what the tests said of it."""
    return {
        "what": tried.label or "an attempt",
        "changes": visible(excerpt(tried.changes.strip(), CHANGES_BYTES)[0]),
        "outcome": _outcome(tried.node) if tried.node else "",
        "refused": tried.node is not None and tried.node.refused,
    }


def _outcome(node: Node) -> str:
    return _printed(node.evaluation.notes, OUTCOME_BYTES)


def _printed(text: str, most_bytes: int = NOTE_BYTES) -> str:
    """What tests printed, cut to the size of a note."""
    return excerpt(visible(terminal_text(text)), most_bytes)[0]
