"""Faults: in which ways a rollout failed, by class, so that rollouts can be counted and compared by them."""

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

__all__ = ["Fault", "faults"]

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
"""A class. A failure mode of a summary is `class: what happened`."""

_UNREADABLE = ("SyntaxError", "IndentationError", "TabError")
REPEATED = 2
"""Times in a row that the same turn with the same results counts as repeated."""


def faults(record: Record) -> tuple[str, ...]:
    """What went wrong, in the order in which it happened; each once."""
    found: list[tuple[Fault, str]] = []
    for above, shift in zip(record.path, record.transitions, strict=False):
        found += _of_deeds(
            [action_record for action_record in record.action_records if action_record.node == shift.node.id]
        )
        found += _of_tests(above, shift, record.path[0].report)
    found += [("failed expansion", f"of node {record.rollout.leaf}: {reason}") for reason in record.failures]
    if record.verdict and not record.verdict["solved"] and record.best.evaluation.solved:
        found.append(("refuted by verification", record.verdict.get("why") or "the tests end otherwise there"))
    return tuple(dict.fromkeys(f"{fault}: {' '.join(what.split())}" for fault, what in found))


def _of_deeds(action_records: list[ActionRecord]) -> Iterator[tuple[Fault, str]]:
    for action_record in action_records:
        match action_record.action:
            case Edit() | Write() if not action_record.seen.ok:
                yield "refused edit", f"of {action_record.path} on the way to node {action_record.node}"
            case Shell() if action_record.seen.refused:
                yield "refused command", command(action_record.action.command)
            case Shell() if action_record.seen.fork_lost:
                yield "time-out", f"of the command {command(action_record.action.command)}"
            case _:
                pass


def _of_tests(above: Node, shift: Transition, baseline: SuiteReport) -> Iterator[tuple[Fault, str]]:
    node, report = shift.node, shift.node.report
    if (often := max((times(node.steps[: n + 1]) for n in range(len(node.steps))), default=0)) >= REPEATED:
        yield "repeated action", f"on the way to {named(node)} a turn was taken {often} times with the same results"
    if node.state_hash == above.state_hash:
        yield "nothing changed", f"{named(node)} is the state that it was made from"
        return
    if late := [test for test, end in report.outcomes.items() if _newly(end, baseline, test)]:
        yield "time-out", f"{named(node)}: {listed(late)}"
    elif report.timed_out:
        yield "time-out", f"{named(node)}: the tests as a whole"
    if _unreadable(report, baseline):
        yield "syntax error", named(node)
    if not report.valid:
        yield "tests did not run", f"{named(node)}: {report.problem or 'no reason given'}"
    if shift.surely_broken:
        yield "regression", f"{named(node)} broke {listed(shift.surely_broken)}"
    if unsure := tuple(test for test in shift.broken if test in shift.since):
        yield "regression", f"{listed(unsure)} failed at {named(node)}, and may since node {shift.since[unsure[0]]}"
    if report.valid and shift.none:
        yield "no change in any test", named(node)
    if node.evaluation.notes.startswith(MANIPULATION):
        yield "tampering flagged", node.evaluation.notes.removeprefix(MANIPULATION)


def _newly(end: Outcome, baseline: SuiteReport, test: str) -> bool:
    """Whether a test ran out of time that did not in the base state."""
    return end is Outcome.TIMEOUT and baseline.outcomes.get(test) is not Outcome.TIMEOUT


def _unreadable(report: SuiteReport, baseline: SuiteReport) -> bool:
    """Whether code cannot be parsed that could in the base state."""
    return any(name in _said(report) and name not in _said(baseline) for name in _UNREADABLE)


def _said(report: SuiteReport) -> str:
    return "\n".join((report.problem, report.output, *report.messages.values()))
