"""Onset: the step at which a failed rollout went wrong, by rules over the record.

The first rule that applies decides. Each states a fact; none excludes that something else was wrong as well.

1. After the step the tests no longer ran, or a test that had passed failed, and this was not fixed until the end of the
   rollout: the first such step. If the test was not run in the states just above (while goal tests fail, usually only
   they are run), the onset may be any step since it passed.
2. From the state before the step, another path led to a better state than any that was reached after it: the first step
   at which the best reachable value fell.
3. The step edited a source file that no failing test executes, and no test was fixed: the first such step.

A node is measured once, after its last step. If several of its steps changed files, steps that changed a file which a
broken test executes are preferred, if coverage is known. If several steps remain, the first is named together with the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.analysis.diagnosis.steps import TraceStep
from agent.evaluate.transitions import Transition
from agent.measure.probing.spectrum import Spectrum
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree
from agent.solver.summaries.wording import listed, named


@dataclass(frozen=True, slots=True)
class Onset:
    """Where a rollout went wrong."""

    step: TraceStep | None
    """None: the node has no recorded action."""
    node: NodeId | None
    """The node that the step led to."""
    rule: str
    why: str
    """The fact, for people."""
    among: tuple[int, ...] = ()
    """The numbers of all steps that may be the onset, if there are several."""


@dataclass(frozen=True, slots=True)
class _Fact:
    nodes: tuple[NodeId, ...]
    """The nodes that may hold the onset, in order."""
    rule: str
    why: str
    tests: tuple[str, ...] = ()
    """The tests that show it."""


def find_onset(
    tree: Tree,
    transitions: Sequence[Transition],
    goals: Sequence[str],
    spectrum: Spectrum | None,
    steps: Sequence[TraceStep],
) -> Onset | None:
    """Where the rollout with these transitions went wrong, by the rules above; None: no rule applies."""
    fact = _never_fixed(transitions) or _fall(tree, [transition.node for transition in transitions])
    if fact is None:
        return _off_target(transitions, goals, spectrum, steps)
    done = [step for step in steps if step.node in fact.nodes]
    writing = [step for step in done if step.wrote]
    executed = [path for test in fact.tests for path in (spectrum.executed.get(test, {}) if spectrum else ())]
    suspects = [step for step in writing if any(piece.path in executed for piece in step.wrote)] or writing or done
    among = tuple(step.number for step in suspects) if len(suspects) > 1 else ()
    first = suspects[0] if suspects else None
    return Onset(first, first.node if first else fact.nodes[0], fact.rule, fact.why, among)


def _never_fixed(transitions: Sequence[Transition]) -> _Fact | None:
    """Rule 1."""
    broken: dict[str, Transition] = {}
    stopped: Node | None = None
    for transition in transitions:
        stopped = None if transition.node.report.valid else stopped or transition.node
        broken = {test: at for test, at in broken.items() if test not in transition.fixed}
        broken |= dict.fromkeys(transition.broken, transition)
    first = min((at.node.id for at in broken.values()), default=None)
    if stopped is not None and (first is None or stopped.id < first):
        why = f"from {named(stopped)} on the tests did not run: {stopped.report.problem or 'no reason given'}"
        return _Fact((stopped.id,), "the tests stopped running", why)
    at = next((at for at in broken.values() if at.node.id == first), None)
    return _regression(transitions, at, [test for test, broke in broken.items() if broke is at]) if at else None


def _regression(transitions: Sequence[Transition], at: Transition, tests: Sequence[str]) -> _Fact:
    """The fact about tests that failed at a node. Tests that this node certainly broke are preferred to those that a
    node above it may have broken."""
    rule = "a regression that was never fixed"
    if sure := tuple(test for test in tests if test not in at.since):
        why = f"{named(at.node)} broke {listed(sure)}, which had passed and was not fixed again"
        return _Fact((at.node.id,), rule, why, sure)
    since = at.since[tests[0]]
    unsure = tuple(test for test in tests if at.since[test] == since)
    nodes = tuple(each.node.id for each in transitions if since <= each.node.id <= at.node.id)
    why = f"{listed(unsure)} had passed before state {since}, failed when run again at {named(at.node)}, and stayed so"
    return _Fact(nodes, rule, why, unsure)


def _fall(tree: Tree, nodes: Sequence[Node]) -> _Fact | None:
    """Rule 2."""
    for node in nodes:
        parent, here = node.parents[0], tree.value_max(node.id)
        if here < tree.value_max(parent):
            better = _best_below(tree, parent)
            worth = "is solved" if better.evaluation.solved else f"is worth {better.value:.3g}"
            way = "" if better.id == parent else f", reached by another way from state {parent},"
            why = f"{named(better)}{way} {worth}; at and below {named(node)} nothing is worth more than {here:.3g}"
            return _Fact((node.id,), "a better state was out of reach from here on", why)
    return None


def _best_below(tree: Tree, node_id: NodeId) -> Node:
    """The state of highest value in a subtree, the oldest of several."""
    waiting, best = [tree[node_id]], tree[node_id]
    while waiting:
        node = waiting.pop()
        best = min(best, node, key=lambda state: (-state.value, state.id))
        waiting += tree.children(node.id)
    return best


def _off_target(
    transitions: Sequence[Transition], goals: Sequence[str], spectrum: Spectrum | None, steps: Sequence[TraceStep]
) -> Onset | None:
    """Rule 3."""
    executed = {path for goal in goals for path in (spectrum.executed.get(goal, {}) if spectrum else ())}
    useful = {transition.node.id for transition in transitions if transition.fixed}
    for step in steps:
        aside = [piece.path for piece in step.wrote if piece.path not in executed]
        if step.stage == "edit" and executed and step.node not in useful and len(aside) == len(step.wrote) > 0:
            why = f"step {step.number} edits {listed(aside)}, which no failing test executes, and no test was fixed"
            return Onset(step, step.node, "an edit of what no failing test executes", why)
    return None
