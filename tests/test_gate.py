"""A strict gate lets a search go on from nothing but strict improvements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.improvement import improves_strictly
from agent.evaluate.value.tests import PassingTests
from agent.measure import Outcome, SuiteReport
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from tests.projects import commit, task
from tests.scripted import ScriptedModel, answer
from tests.trees import node


def report(valid=True, **outcomes):
    return SuiteReport({test: Outcome[outcome] for test, outcome in outcomes.items()}, valid=valid)


ROOT = replace(node(0), report=report(a="FAILED", b="FAILED", c="PASSED"))
HALF = replace(node(1, 0), report=report(a="PASSED", b="FAILED"))


@pytest.mark.parametrize(
    ("path", "child", "improves"),
    [
        ((ROOT,), report(a="PASSED", b="FAILED"), True),
        ((ROOT,), report(a="FAILED", b="FAILED", c="PASSED"), False),
        ((ROOT,), report(a="PASSED", b="PASSED", c="FAILED"), False),
        ((ROOT,), report(a="PASSED", b="PASSED", c="TIMEOUT"), False),
        ((ROOT,), report(valid=False, a="PASSED", b="PASSED"), False),
        ((ROOT, HALF), report(a="PASSED", b="FAILED"), False),
        ((ROOT, HALF), report(a="FAILED", b="PASSED"), False),
        ((ROOT, HALF), report(a="PASSED", b="PASSED", c="FAILED"), False),
        ((ROOT, HALF), report(a="PASSED", b="PASSED", c="PASSED"), True),
        ((ROOT,), report(a="FAILED", b="FAILED", c="PASSED", made_up="PASSED"), False),
        ((ROOT,), report(a="PASSED", b="ERROR", c="SKIPPED"), True),
    ],
)
def test_more_tests_pass_than_in_any_state_before_and_none_breaks(path, child, improves):
    assert improves_strictly(path, child) is improves


PAIR = """def low(a, b):
    return sorted([a, b])[1]


def high(a, b):
    return sorted((a, b))[0]


def both(a, b):
    return a, b
"""
PAIR_TESTS = """from pair import both, high, low


def test_low():
    assert low(1, 2) == 1


def test_high():
    assert high(1, 2) == 2


def test_both():
    assert both(1, 2) == (1, 2)
"""
MEND_LOW, BREAK_LOW = ("sorted([a, b])[1]", "sorted([a, b])[0]"), ("sorted([a, b])[0]", "sorted([a, b])[1]")
MEND_HIGH, BREAK_BOTH = ("sorted((a, b))[0]", "sorted((a, b))[1]"), ("return a, b", "return b, a")


def edits(*replacements):
    calls = (("edit", {"path": "pair.py", "old": old, "new": new}) for old, new in replacements)
    return answer("Perhaps this.", *calls, ("run_tests", {}))


@pytest.mark.slow
@pytest.mark.namespace
def test_a_repair_that_breaks_another_test_is_taken_back_and_the_next_attempt_is_told_what_it_broke(provider, tmp_path):
    """TraceCoder's rollback: what is gone on from passes more tests than all before it."""
    repairs = [edits(MEND_LOW, BREAK_BOTH), edits(MEND_LOW), edits(MEND_HIGH, BREAK_LOW), edits(MEND_HIGH)]
    model = ScriptedModel(repairs)
    repo = commit(tmp_path / "pair", {"pair.py": PAIR, "test_pair.py": PAIR_TESTS})
    with Run.open(tmp_path / "run") as run:
        limits = Budget(max_nodes=5)
        parts = Components(
            provider, ChatPolicy(model), BestFirst(), PassingTests(), limits, gate="strict", baseline_runs=1
        )
        result = solve(task(repo), parts, run)
        tree = run.tree
    assert [(tree[n].parents, tree[n].refused) for n in range(1, 5)] == [
        ((0,), True),
        ((0,), False),
        ((2,), True),
        ((2,), False),
    ]
    for n, broken in ((1, "Broken: test_pair.py::test_both"), (3, "Still failing: test_pair.py::test_low")):
        told = str(model.heard[n][-1]["content"])
        assert f"{broken} (failed)" in told
        assert "It was taken back" in told
        assert "  The change:\n    diff --git a/pair.py b/pair.py\n" in told
        assert "    -    return " in told
    way = tree.path(4)
    assert [len(tree[n].report.passes) for n in (0, 2, 4)] == [1, 2, 3] == [len(node.report.passes) for node in way]
    assert result.status == "solved"
    with provider.at(tree[2].snapshot) as box:
        assert box.read("pair.py").decode() == PAIR.replace(*MEND_LOW)
