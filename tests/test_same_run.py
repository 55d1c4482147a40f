"""Whether a run directory holds a run of the task that is given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent import load, solve
from agent.build.same_run import require_same, with_commit
from agent.errors import UsageError
from agent.run.events import Started
from agent.settings import Settings
from agent.task import Task, dump_task
from sandboxes import SetupFailed, Snapshot, Workspace
from tests.projects import BUG, FIX, git, means


def test_a_relative_path_is_another_repository_in_another_working_directory(tmp_path, monkeypatch):
    task = Task("bug-7", "It is wrong.", Workspace(path=Path()), "pytest")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    started = Started(dump_task(task), {}, Snapshot("s", "d"))
    require_same(started, task, Settings(), tmp_path / "run")
    monkeypatch.chdir(tmp_path / "two")
    with pytest.raises(UsageError, match=r"workspace\.path .*one.*two"):
        require_same(started, task, Settings(), tmp_path / "run")


def test_the_message_shows_where_long_texts_begin_to_differ(tmp_path):
    old, new = (
        Task("bug-7", "It is wrong. " * 20 + end, Workspace(path=tmp_path), "pytest") for end in ("Now.", "Then.")
    )
    with pytest.raises(UsageError, match=r"statement '\.\.\.wrong\. It is wrong\. Now\.', now .* Then\.'"):
        require_same(Started(dump_task(old), {}, Snapshot("s", "d")), new, Settings(), tmp_path / "run")
    longer = replace(old, statement=f"{old.statement} Mind the gap.")
    with pytest.raises(UsageError, match=r"is wrong\. Now\.', now '\.\.\..*is wrong\. Now\. Mind the gap\.'"):
        require_same(Started(dump_task(old), {}, Snapshot("s", "d")), longer, Settings(), tmp_path / "run")


def test_the_base_of_a_task_is_the_commit_and_what_differs_from_it(tmp_path):
    repo = means(tmp_path / "repo")
    task = Task("bug-7", "It is wrong.", Workspace(path=repo), "pytest")
    (committed,) = {with_commit(task).base for _ in range(2)}
    (repo / "means.py").write_text((repo / "means.py").read_text().replace(BUG, FIX))
    (changed,) = {with_commit(task).base for _ in range(2)}
    (repo / "runs").mkdir()
    (repo / "runs" / "journal.jsonl").write_text("")
    assert with_commit(task).base == changed
    assert changed.startswith(f"{committed}+")
    assert with_commit(Task("bug-7", "It is wrong.", Workspace(path=repo), "pytest", base="v1")).base == "v1"
    assert with_commit(Task("bug-7", "It is wrong.", Workspace(path=tmp_path), "pytest")).base == ""


@pytest.mark.namespace
@pytest.mark.usefixtures("namespaces")
def test_the_answer_for_a_checkout_is_not_given_for_what_it_was_changed_to(tmp_path):
    repo = means(tmp_path / "repo")
    task = Task("bug-7", "mean([]) raises", Workspace(path=repo), "python3 -m pytest -q")
    settings = load(overrides=["budget.max_nodes=1", "sandbox.kind=namespace", "measure.baseline_runs=1"])
    solve(task, settings, tmp_path / "run")
    solve(task, settings, tmp_path / "run")
    git(repo, "commit", "-q", "--allow-empty", "-m", "Another")
    with pytest.raises(UsageError, match=r"the commit of the checkout '\w+', now '\w+'.*name another directory"):
        solve(task, settings, tmp_path / "run")


@pytest.mark.namespace
@pytest.mark.usefixtures("namespaces")
def test_the_directory_of_a_task_that_was_refused_may_be_that_of_the_corrected_one(tmp_path):
    wrong = Task("bug-7", "x", Workspace(path=means(tmp_path / "repo"), setup=("exit 7",)), "python3 -m pytest -q")
    settings = load(overrides=["budget.max_nodes=1", "sandbox.kind=namespace", "measure.baseline_runs=1"])
    with pytest.raises(SetupFailed):
        solve(wrong, settings, tmp_path / "run")
    right = Task("bug-7", "x", Workspace(path=tmp_path / "repo"), "python3 -m pytest -q", ("test_nothing.py::test_x",))
    with pytest.raises(UsageError, match="there is no file"):
        solve(right, settings, tmp_path / "run")
    right = Task("bug-7", "x", Workspace(path=tmp_path / "repo"), "python3 -m pytest -q")
    assert solve(right, settings, tmp_path / "run").nodes == 1
