"""Findings: how a rollout changed the test results, what another attempt can learn from it, and what may still be
wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from agent.actions import Effect, Shell, effect
from agent.counting import counted
from agent.evaluate.transitions import Transition
from agent.measure.probing.spectrum import affected
from agent.run.tree.node import Node
from agent.solver.summaries.record import Record
from agent.solver.summaries.wording import command, listed, named
from agent.untrusted import one_line


def hypothesis(record: Record) -> str:
    """Return what the rollout assumed to be wrong: the strategy that it followed, else the labels of its nodes."""
    labelled = [node for node in record.path[1:] if node.label]
    strategies = [node for node in labelled if node.kind == "strategy"]
    return "; ".join(dict.fromkeys(filter(None, map(_words, strategies or labelled))))


def progress(record: Record) -> str:
    """Describe how each node of the path changed the test results, one sentence for each."""
    return " ".join(f"{_sentence(transition, record)}." for transition in record.transitions)


def insights(record: Record) -> tuple[str, ...]:
    """Describe the observed effects of edits, for nodes whose label or edits show what was done."""
    found: dict[str, None] = {}
    for transition in record.transitions:
        what = _what(transition.node, record)
        if not what:
            continue
        if transition.surely_fixed:
            found[f"{what} makes {listed(transition.surely_fixed)} pass"] = None
        if broken := tuple(test for test in transition.surely_broken if test not in record.declared):
            found[f"{what} breaks {listed(broken)}"] = None
        if own := _own_tests(transition.node, record):
            found[f"{what} makes {own} pass"] = None
        elif transition.none and transition.node.report.valid and record.goals:
            found[f"{what} changed nothing in any test that was run"] = None
    return tuple(found)


def risks(record: Record) -> tuple[str, ...]:
    """Return what may be wrong although no test shows it."""
    return tuple(dict.fromkeys((*_of_places(record), *_of_tests(record), *_of_commands(record))))


def _words(node: Node) -> str:
    """Return a node's label without the prefix that names its policy, its kind or the files that a model changed; for a
    submitted one, what the model said when it submitted."""
    if node.by_model and node.kind != "strategy":
        submission = node.submission.message if node.submission else ""
        return one_line(submission or node.label.partition(": ")[2])
    return node.label.removeprefix("mutate: ").removeprefix("strategy: ")


def _own_tests(node: Node, record: Record) -> str:
    """Count, in words, the tests that the attempt added and that pass from this node on and fail on the unchanged
    code."""
    before = next((parent.evaluation.reproduced_by for parent, n in pairwise(record.path) if n.id == node.id), ())
    new = [test for test in node.evaluation.reproduced_by if test not in before]
    return f"{counted(len(new), 'test')} of its own" if new else ""


def _what(node: Node, record: Record) -> str:
    """Return what was done at a node: its label, else the files that it edited."""
    if node.label:
        return f"`{node.label}`"
    records = (each for each in record.action_records if each.node == node.id and each.changes_a_file)
    files = tuple(dict.fromkeys(each.path for each in records))
    return f"the edit of {listed(files)}" if files else ""


def _sentence(transition: Transition, record: Record) -> str:
    name = named(transition.node)
    if not transition.node.report.valid:
        return f"{name}: the tests did not run"
    changes = [f"fixes {listed(transition.surely_fixed)}"] if transition.surely_fixed else []
    changes += [f"breaks {listed(transition.surely_broken)}"] if transition.surely_broken else []
    if own := _own_tests(transition.node, record):
        changes.append(f"passes {own} that did not pass on the unchanged code")
    if transition.node.evaluation.shows_the_issue:
        changes.append("adds tests that show the issue")
    nothing = "changes no test that was run" if transition.none else "is measured"
    return f"{name} {' and '.join(changes) or nothing}{_run_again(transition)}"


def _run_again(transition: Transition) -> str:
    """Describe the results of tests that the states just above had not run."""
    again = [
        f"{listed(unsure)} {end}"
        for end, tests in (("pass", transition.fixed), ("fail", transition.broken))
        if (unsure := tuple(test for test in tests if test in transition.since))
    ]
    return f" (run again: {'; '.join(again)})" if again else ""


def _of_places(record: Record) -> Iterator[str]:
    """Yield the risks of changed tests, and of changes that no test covers."""
    tests = [file.path for file in record.patch if record.protection.is_test(file.path)]
    if changed := [file.path for file in record.patch if file.path in tests and not file.new]:
        yield f"it changes tests or what lies among them: {listed(changed)}"
    spectrum = record.spectrum
    if spectrum is None or spectrum.problem or not spectrum.executed:
        return
    sources = [file for file in record.patch if file.path not in tests]
    lines = [spectrum.executed.get(goal, {}) for goal in record.goals]
    outside = [file.path for file in sources if any(lines) and not any(file.path in executed for executed in lines)]
    if outside:
        yield f"before the change no failing test executed {listed(outside)}"
    unseen = [
        file.path
        for file in sources
        if not affected(spectrum, [file]) and (file.gone | file.beside).isdisjoint(spectrum.imported.get(file.path, ()))
    ]
    if unseen:
        yield f"before the change no test executed the changed lines of {listed(unseen)}"


def _of_tests(record: Record) -> Iterator[str]:
    baseline, best = record.path[0].report, record.best.report
    if record.declared:
        tests = [f"{test} ({reason})" if reason else test for test, reason in record.declared.items()]
        yield f"the attempt says of tests that fail that they contradict the issue: {listed(tests)}"
    if not record.goals and not record.best.evaluation.reproduces:
        yield "no test is known that fails because of the issue"
    if baseline.flaky:
        yield f"set aside as flaky: {listed(baseline.flaky)}"
    if retried := tuple(dict.fromkeys((*best.flaky, *record.verdict.get("flaky", ())))):
        yield f"failed once and passed when run again: {listed(retried)}"
    if best.valid and not best.complete and not record.verdict and all(map(best.passed, record.goals)):
        yield "not all tests were run on it"


def _of_commands(record: Record) -> Iterator[str]:
    for each in record.action_records:
        if isinstance(each.action, Shell) and effect(each.action) is Effect.IRREVERSIBLE and not each.seen.refused:
            yield f"it ran a command that cannot be taken back: {command(each.action.command)}"
