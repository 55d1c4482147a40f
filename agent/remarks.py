"""Remarks: what people should know about how the states of a run were measured."""

from __future__ import annotations

from agent.delegation.attempts import unmerged
from agent.guard import MANIPULATION
from agent.measure import Outcome
from agent.measure.messages import error_of
from agent.node import Node, NodeId
from agent.run import Run
from agent.value.weighing import ABSTAINED

__all__ = ["manipulations", "remarks"]


def remarks(run: Run) -> tuple[str, ...]:
    """What is odd about the tests, and about what models said of them."""
    if not len(run.tree):
        return ()
    report, spectrum = run.tree.root.report, run.note(0, "spectrum") or {}
    broken = [test for test, outcome in report.outcomes.items() if outcome is Outcome.ERROR and "::" not in test]
    said = [
        f"{test} cannot be imported: {error_of(report.messages.get(test, '')) or 'no reason given'}" for test in broken
    ]
    flaky = [f"set aside as flaky: {', '.join(report.flaky)}"] if report.flaky else []
    unsteady = _unsteady(run)
    odd = (
        [f"failed once and passed when run again, with one and the same patch: {', '.join(unsteady)}"]
        if unsteady
        else []
    )
    blind = [f"the failing tests could not be traced: {spectrum['problem']}"] if spectrum.get("problem") else []
    return (*said, *flaky, *odd, *blind, *_unheard(run), *unmerged(run))


def manipulations(run: Run) -> frozenset[NodeId]:
    """The states whose patch the guard refused, when they were measured or verified."""
    return frozenset(node.id for node in run.tree if any(said.startswith(MANIPULATION) for said in _said(run, node)))


def _said(run: Run, node: Node) -> tuple[str, str]:
    verdict = run.note(node.id, "verdict") or {}
    return node.evaluation.notes, str(verdict.get("why", ""))


def _unheard(run: Run) -> list[str]:
    """That models which had to value states said nothing of some."""
    count = sum(ABSTAINED in node.evaluation.parts for node in run.tree)
    return [f"of {count} states a model gave no opinion that could be read; their tests decide"] if count else []


def _unsteady(run: Run) -> tuple[str, ...]:
    """Tests that were found to be flaky while patches were measured or verified."""
    found = [test for node in run.tree if node.parents for test in node.report.flaky]
    found += [test for node in run.tree for test in (run.note(node.id, "verdict") or {}).get("flaky", ())]
    return tuple(dict.fromkeys(found))
