"""A search as a library: an iterator of events that ends with the result, and that can be left at any time."""

import dataclasses
import threading

import pytest

from agent import Task, iter_solve, load, solve
from agent.budget import Stop
from agent.errors import UsageError
from agent.run.events import Started
from agent.run.run import Run
from agent.solver.result import Result
from sandboxes import Workspace
from tests.projects import FIX, SOURCE, TESTS, commit

PLAIN = ['sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']
"""The tools of development are slow plugins."""


@pytest.fixture
def task(tmp_path):
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, "test_means.py": TESTS})
    return Task("bug", "mean of nothing", Workspace(path=repo), "python3 -m pytest -q")


@pytest.mark.slow
def test_every_event_comes_as_it_is_recorded_and_the_result_comes_last(namespaces, task, tmp_path):
    cancel = threading.Event()
    *events, result = iter_solve(task, load(overrides=PLAIN), tmp_path / "run", cancel=cancel)
    assert not cancel.is_set()
    assert isinstance(result, Result)
    assert result.status == "solved"
    assert FIX.encode() in result.patch
    assert not any(isinstance(event, Result) for event in events)
    with Run.read(tmp_path / "run") as run:
        assert isinstance(events[0], Started)
        assert events == [*run.journal.events()]


def test_a_loop_that_is_left_ends_the_search_and_the_run_can_be_resumed(namespaces, task, tmp_path):
    before = set(threading.enumerate())
    search = iter_solve(task, load(overrides=["measure.baseline_runs=1", *PLAIN]), tmp_path / "run")
    assert isinstance(next(search), Started)
    search.close()
    assert set(threading.enumerate()) <= before
    with Run.open(tmp_path / "run") as run:
        assert run.ended is not None
        assert Stop[run.ended.stop] is Stop.INTERRUPTED


def test_what_goes_wrong_is_raised_where_the_loop_is(namespaces, tmp_path):
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, "test_means.py": TESTS})
    task = Task("bug", "x", Workspace(path=repo), "python3 -m pytest -q", goal_tests=("test_means.py::test_gone",))
    with pytest.raises(UsageError, match="there is no test"):
        list(iter_solve(task, load(overrides=["measure.baseline_runs=1", *PLAIN]), tmp_path / "run"))


@pytest.fixture
def run(namespaces, task, tmp_path):
    """A run of the task that found nothing and has ended."""
    solve(task, load(overrides=["budget.max_nodes=1", *PLAIN]), tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.slow
def test_a_directory_with_a_run_of_another_task_is_refused_and_the_difference_named(run, task, tmp_path):
    other = commit(tmp_path / "other", {"means.py": SOURCE, "test_means.py": TESTS})
    with pytest.raises(UsageError, match=r"statement 'mean of nothing', now 'x'.*ramify resume .*another directory"):
        solve(dataclasses.replace(task, statement="x"), load(overrides=PLAIN), run)
    with pytest.raises(UsageError, match=r"workspace\.path '.*/repo', now '.*/other'"):
        solve(dataclasses.replace(task, workspace=Workspace(path=other)), load(overrides=PLAIN), run)
    with pytest.raises(UsageError, match=r"test_command '.*', now 'make test'"):
        solve(dataclasses.replace(task, test_command="make test"), load(overrides=PLAIN), run)


@pytest.mark.slow
def test_a_directory_with_a_run_of_other_settings_is_refused_and_the_difference_named(run, task):
    with pytest.raises(UsageError, match=r"search\.name 'auto', now 'mcts'; seed 0, now 3\."):
        solve(task, load(overrides=["search=mcts", "seed=3", *PLAIN]), run)


@pytest.mark.slow
def test_a_directory_with_a_run_of_the_same_task_and_settings_is_continued_with_a_higher_limit(run, task):
    result = solve(task, load(overrides=["workers=2", *PLAIN]), run)
    assert (result.status, result.run_dir) == ("solved", run)
    assert solve(task, load(overrides=PLAIN), run).patch == result.patch
