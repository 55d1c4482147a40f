"""The policy without a model, in real searches and asked for single proposals."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from agent.budget import Budget, Stop
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.measure.probing.spectrum import Spectrum
from agent.policy import Position
from agent.policy.mutate import MutatePolicy
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from sandboxes.namespace.provider import namespace_provider
from tests.mutating import applied
from tests.projects import commit, means, task

pytestmark = pytest.mark.namespace

TWO_BUGS = """def fits(sizes, limit):
    return any(size <= limit for size in sizes)


def parts(whole, size):
    return divmod(size, whole)
"""
TWO_TESTS = """from shapes import fits, parts


def test_fits():
    assert fits([1, 2], 2) and not fits([1, 3], 2)


def test_parts():
    assert parts(7, 3) == (2, 1)


def test_both():
    assert not fits(parts(7, 3), 1)
"""


def mutating(run):
    return MutatePolicy(lambda: Spectrum.from_json(run.note(0, "spectrum")))


def attempt(place, wanted, **limits):
    """Solve a task in a directory; a second call goes on with the same run."""
    with Run.open(place / "run") as run:
        provider = namespace_provider(place / "run" / "store")
        parts = Components(
            provider, mutating(run), BestFirst(), PassingTests(), Budget(**limits), localise=True, baseline_runs=1
        )
        try:
            return solve(wanted, parts, run), run
        finally:
            provider.close()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The project with one bug, measured: its run, and a position at its base state with a lease of it."""
    place = tmp_path_factory.mktemp("measured")
    wanted = task(means(place / "repo"))
    _, run = attempt(place, wanted, max_nodes=1)
    provider = namespace_provider(place / "run" / "store")
    with provider.at(run.tree.root.snapshot) as box:
        yield run, Position(wanted, (run.tree.root,), 0, (), (), box)
    provider.close()


def propose(policy, position, **changes):
    return policy.propose(replace(position, **changes), Random(0))


@pytest.mark.slow
def test_a_bug_is_repaired_without_a_model(tmp_path):
    result, run = attempt(tmp_path, task(means(tmp_path / "repo")), max_nodes=40)
    assert (result.status, result.stop) == ("solved", Stop.SOLVED)
    assert run.usage.model_calls == 0


@pytest.mark.slow
def test_two_bugs_are_repaired_one_after_the_other(tmp_path):
    repo = commit(tmp_path / "repo", {"shapes.py": TWO_BUGS, "test_shapes.py": TWO_TESTS})
    result, run = attempt(tmp_path, task(repo, statement="shapes are wrong"), max_nodes=60)
    assert result.status == "solved"
    assert run.tree.depth(result.best_node) == 2
    assert b"+    return all(" in result.patch


@pytest.mark.slow
def test_the_nth_proposal_is_the_same_for_a_policy_that_never_saw_the_others(measured):
    run, position = measured
    in_order = mutating(run)
    first = [propose(in_order, position, index=n) for n in range(6)]
    assert len({p.label for p in first}) > 3
    assert [propose(mutating(run), position, index=n) for n in (5, 2)] == [first[5], first[2]]


def test_priors_fall_and_every_proposal_applies(measured):
    run, position = measured
    policy = mutating(run)
    data = position.box.read("means.py")
    proposals = [propose(policy, position, index=n) for n in range(80)]
    assert all(0 < p.prior <= 1 for p in proposals)
    assert [p.prior for p in proposals] == sorted((p.prior for p in proposals), reverse=True)
    assert len({applied(data, p.actions) for p in proposals}) == 80


def test_when_nothing_is_left_there_are_no_actions(measured):
    run, position = measured
    assert propose(mutating(run), position, index=10**6).actions == ()


def test_a_child_that_is_no_better_than_its_parent_is_left(measured):
    run, position = measured
    child = replace(position.node, id=9, parents=(0,), snapshot=replace(position.node.snapshot, digest="other"))
    assert propose(mutating(run), position, path=(position.node, child)).actions == ()
    better = replace(child, evaluation=Evaluation(position.node.value + 0.1))
    assert propose(mutating(run), position, path=(position.node, better)).actions


def test_a_file_that_is_not_python_3_is_passed_over(measured):
    run, position = measured
    spectrum = Spectrum.from_json(run.note(0, "spectrum"))
    executed = {test: {**lines, "old.py": (1,), "gone.py": (1,)} for test, lines in spectrum.executed.items()}
    position.box.write("old.py", b"print 'x'\n")
    found = propose(MutatePolicy(lambda: replace(spectrum, executed=executed)), position)
    assert found.actions[0].path == "means.py"
