"""Warnings about how the states of a run were measured."""

from __future__ import annotations

from collections.abc import Iterator

from agent.evaluate.value.weighing import ABSTAINED
from agent.measure import Outcome, SuiteReport
from agent.measure.messages import error_of
from agent.run.run import Run
from agent.run.tree.evaluation import MANIPULATION
from agent.run.tree.node import Node, NodeId
from agent.solver.delegation.attempts import unmerged

__all__ = ["manipulations", "remarks"]


def remarks(run: Run) -> tuple[str, ...]:
    """What is odd about the tests, and about what models said of them."""
    if not len(run.tree):
        return ()
    report, spectrum = run.tree.root.report, run.note(0, "spectrum") or {}
    said = [*_long(report)]
    broken = [test for test, outcome in report.outcomes.items() if outcome is Outcome.ERROR and "::" not in test]
    said += [
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


def _long(report: SuiteReport) -> Iterator[str]:
    """That the first run of all tests did not come to its end, and what follows from it."""
    late, run = sum(report.late.values()), len(report.outcomes)
    if late:
        yield (
            f"all tests take longer than {report.duration_s:.0f} s: of about {run + late:,} the base ran {run:,}; "
            "states are measured by the tests that their change can reach"
        )
    elif report.problem and report.valid and not run:
        yield f"no test could be run: {report.problem}; answers rest on what models and their own tests say"


def manipulations(run: Run) -> frozenset[NodeId]:
    """The states whose patch the guard refused, when they were measured or verified."""
    return frozenset(node.id for node in run.tree if any(said.startswith(MANIPULATION) for said in _said(run, node)))


def _said(run: Run, node: Node) -> tuple[str, str]:
    verdict = run.verdict(node.id) or {}
    return node.evaluation.notes, str(verdict.get("why", ""))


def _unheard(run: Run) -> list[str]:
    """For how many states a model gave no readable opinion."""
    count = sum(ABSTAINED in node.evaluation.parts for node in run.tree)
    return [f"of {count} states a model gave no opinion that could be read; their tests decide"] if count else []


def _unsteady(run: Run) -> tuple[str, ...]:
    """Tests that turned out to be flaky while patches were measured or verified."""
    found = [test for node in run.tree if node.parents for test in node.report.flaky]
    found += [test for node in run.tree for test in (run.verdict(node.id) or {}).get("flaky", ())]
    return tuple(dict.fromkeys(found))
