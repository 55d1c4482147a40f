"""Whether a run directory holds a run of the task that is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.build.same_run import require_same
from agent.errors import UsageError
from agent.run.events import Started
from agent.settings import Settings
from agent.task import Task, dump_task
from sandboxes import Snapshot, Workspace


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
