"""Faults: how a rollout failed, by class, so that rollouts can be counted and compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from agent.actions import Edit, Shell, Write
from agent.evaluate.transitions import Transition
from agent.measure import Outcome, SuiteReport
from agent.policy.chat.repeats import times
from agent.run.action_log import ActionRecord
from agent.run.tree.evaluation import MANIPULATION
from agent.run.tree.node import Node
from agent.solver.summaries.record import Record
from agent.solver.summaries.wording import command, listed, named

Fault = Literal[
    "syntax error",
    "time-out",
    "tests did not run",
    "regression",
    "no change in any test",
    "nothing changed",
    "refused edit",
    "refused command",
    "repeated action",
    "failed expansion",
    "tampering flagged",
    "refuted by verification",
]
"""The class of a fault. A failure mode of a summary reads `class: what happened`."""

_UNREADABLE = ("SyntaxError", "IndentationError", "TabError")
REPEATED = 2
"""A turn counts as repeated if it occurs at least this many times in a row with the same results."""


def faults(record: Record) -> tuple[str, ...]:
    """Return what went wrong, in order of occurrence, without repeats."""
    found: list[tuple[Fault, str]] = []
    for parent, transition in zip(record.path, record.transitions, strict=False):
        found += _of_actions([each for each in record.action_records if each.node == transition.node.id])
        found += _of_tests(parent, transition, record)
    found += [("failed expansion", f"of state {record.rollout.leaf}: {reason}") for reason in record.failures]
    if record.verdict and not record.verdict["solved"] and record.best.evaluation.solved:
        found.append(("refuted by verification", record.verdict.get("why") or "the tests end otherwise there"))
    return tuple(dict.fromkeys(f"{fault}: {' '.join(what.split())}" for fault, what in found))


def _of_actions(action_records: list[ActionRecord]) -> Iterator[tuple[Fault, str]]:
    for record in action_records:
        match record.action:
            case Edit() | Write() if not record.seen.ok:
                yield "refused edit", f"of {record.path} on the way to state {record.node}"
            case Shell(command=text) if record.seen.refused:
                yield "refused command", command(text)
            case Shell(command=text) if record.seen.fork_lost:
                yield "time-out", f"of the command {command(text)}"
            case _:
                pass


def _of_tests(parent: Node, transition: Transition, record: Record) -> Iterator[tuple[Fault, str]]:
    node, report, baseline = transition.node, transition.node.report, record.path[0].report
    if (often := max((times(node.steps[: n + 1]) for n in range(len(node.steps))), default=0)) >= REPEATED:
        yield "repeated action", f"on the way to {named(node)} a turn was taken {often} times with the same results"
    if node.state_hash == parent.state_hash:
        if not node.submitted:
            yield "nothing changed", f"{named(node)} is the state that it was made from"
        return
    late = [test for test, outcome in report.outcomes.items() if outcome is Outcome.TIMEOUT]
    if late := [test for test in late if baseline.outcomes.get(test) is not Outcome.TIMEOUT]:
        yield "time-out", f"{named(node)}: {listed(late)}"
    elif report.timed_out:
        yield "time-out", f"{named(node)}: the tests as a whole"
    if _unreadable(report, baseline):
        yield "syntax error", named(node)
    if not report.valid:
        yield "tests did not run", f"{named(node)}: {report.problem or 'no reason given'}"
    broken = [test for test in transition.broken if test not in record.declared]
    if sure := [test for test in broken if test not in transition.since]:
        yield "regression", f"{named(node)} broke {listed(sure)}"
    if unsure := [test for test in broken if test in transition.since]:
        since = transition.since[unsure[0]]
        yield "regression", f"{listed(unsure)} failed at {named(node)}, and may since state {since}"
    if report.valid and transition.none and record.goals and not node.evaluation.reproduces:
        yield "no change in any test", named(node)
    if node.evaluation.tampered:
        yield "tampering flagged", node.evaluation.notes.removeprefix(MANIPULATION)


def _unreadable(report: SuiteReport, baseline: SuiteReport) -> bool:
    """Whether there is a syntax error that the root state does not have."""
    return any(name in _text(report) and name not in _text(baseline) for name in _UNREADABLE)


def _text(report: SuiteReport) -> str:
    return "\n".join((report.problem, report.output, *report.messages.values()))
