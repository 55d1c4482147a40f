"""Warnings about how the states of a run were measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agent.counting import counted, first_of
from agent.errors import JournalError
from agent.evaluate.goal_tests import left_out
from agent.evaluate.value.weighing import ABSTAINED
from agent.measure import Outcome, SuiteReport
from agent.measure.messages import INSTALL, OWN_COPY, error_of, missing_package
from agent.measure.regressions import regressions
from agent.run.grade import Grade, grade
from agent.run.rollouts import is_candidate
from agent.run.run import Run
from agent.run.tree.evaluation import MANIPULATION
from agent.run.tree.node import Node, NodeId
from agent.solver.contrast import suspects
from agent.solver.delegation.attempts import unmerged
from agent.task import load_task

NAMED = 3
"""The maximum number of tests that a warning names."""


def remarks(run: Run) -> tuple[str, ...]:
    """Return warnings about the tests, about models' opinions of the states, and about parts that are not merged."""
    if not len(run.tree):
        return ()
    return (*_of_baseline(run.tree.root.report), *_of_goals(run), *_of_run(run), *unmerged(run))


def _of_baseline(report: SuiteReport) -> Iterator[str]:
    late, count = sum(report.late.values()), len(report.outcomes)
    if late:
        yield (
            f"all tests take longer than {report.duration_s:.0f} s: of about {count + late:,} the base ran {count:,}; "
            "states are measured by the tests that their change can reach"
        )
    elif report.problem and report.valid and not count:
        yield f"no test could be run: {report.problem}; answers rest on what models and their own tests say"
    for name, file in report.copies.items():
        yield f"the tests import {name} from {file}, not from the checkout, so no change of it was tested: {OWN_COPY}"
    yield from _not_imported(report)
    if report.flaky:
        yield f"set aside as flaky: {', '.join(report.flaky)}"


def _not_imported(report: SuiteReport) -> Iterator[str]:
    """Yield warnings about test files that cannot be imported: one for all files that lack the same package, and one
    for each other file with its error."""
    lacking: Counter[str] = Counter()
    for test, outcome in report.outcomes.items():
        if outcome is not Outcome.ERROR or "::" in test:
            continue
        message = report.messages.get(test, "")
        if package := missing_package(message):
            lacking[package] += 1
        else:
            yield f"{test} cannot be imported: {error_of(message) or 'no reason given'}"
    for package, count in lacking.items():
        yield f"{counted(count, 'test file')} cannot be imported without {package}: {INSTALL}"


def _of_goals(run: Run) -> Iterator[str]:
    """Yield warnings if the choice of goal tests may surprise; none for a task that this version cannot read."""
    try:
        task = load_task(run.started.task if run.started else {})
    except JournalError:
        return
    if names := left_out(task, run.tree.root.report):
        yield f"named as goals, but not failing before the search: {first_of(names, NAMED)}"
    if task.statement.strip() and task.goal_failing and not run.usage.model_calls:
        yield "no model read the issue: the goals are the tests that failed before the search"


def _of_run(run: Run) -> Iterator[str]:
    flaky = [test for node in run.tree if node.parents for test in node.report.flaky]
    flaky += [test for node in run.tree for test in (run.verdict(node.id) or {}).get("flaky", ())]
    if flaky:
        yield f"failed once and passed when run again with the same patch: {', '.join(dict.fromkeys(flaky))}"
    for node, reason in suspects(run).items():
        yield f"state {node} may only satisfy the tests, says a model that compared the answers: {reason}"
    if problem := (run.note(0, "spectrum") or {}).get("problem"):
        yield f"the failing tests could not be traced: {problem}"
    if count := sum(ABSTAINED in node.evaluation.parts for node in run.tree):
        yield f"for {counted(count, 'state')} a model gave no readable opinion; their tests decide"


def refusal(run: Run, answer: Node | None) -> tuple[str, ...]:
    """Return a sentence on why the best state is not the answer: its verification refused it, or it breaks tests."""
    better = (node for node in run.tree if node.value > (answer or run.tree.root).value)
    for node in sorted(better, key=lambda node: -node.value):
        if why := _why_refused(run, node):
            return (f"state {node.id} looked better, but {why}",)
    return ()


def _why_refused(run: Run, node: Node) -> str:
    """Return why the state's patch cannot be the answer; empty if it can be."""
    if (verdict := run.verdict(node.id)) is None:
        broken = () if is_candidate(node, run.tree.root) else regressions(run.tree.root.report, node.report)
        least = "at least " if node.report.left_out else ""
        return f"it breaks {least}{counted(len(broken), 'test')}: {first_of(broken, NAMED)}" if broken else ""
    if grade(node, verdict, ()) is not Grade.NONE:
        return ""
    if refused := verdict.get("broken", ()):
        return f"the full test run broke {counted(len(refused), 'test')}: {first_of(refused, NAMED)}"
    return verdict.get("why", "").partition("\n")[0] or "its verification refused it"


def manipulations(run: Run) -> frozenset[NodeId]:
    """Return the states whose patch the guard refused when it was measured or verified."""
    return frozenset(node.id for node in run.tree if _is_manipulation(run, node))


def _is_manipulation(run: Run, node: Node) -> bool:
    return node.evaluation.tampered or str((run.verdict(node.id) or {}).get("why", "")).startswith(MANIPULATION)
