"""A repository that names programs to git gets none of them run on the host, whatever is done with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.analysis.history import HISTORY, History, keep, promote
from agent.budget import Budget
from agent.cli import checkout
from agent.cli.app import app
from agent.cli.ci.patch_check import check
from agent.engine.components import Components
from agent.errors import RamifyError
from agent.evaluate.value.tests import PassingTests
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.solver.solve import solve
from benchmarks.data import clones
from benchmarks.data.instances import InstanceBroken
from sandboxes import Provider, SandboxError, Workspace
from sandboxes.git.foreign import locate, opened
from sandboxes.namespace.provider import namespace_provider
from tests.attacks.hostile import ALL_AT_ONCE, HOSTILE, PATCH, Hostile, clean_by_info, hook, seen, template
from tests.halves import LOW, SOURCE, TESTS, Doing, Planned
from tests.projects import GOAL, git, means, task
from tests.projects import SOURCE as MEANS
from tests.projects import TESTS as MEANS_TESTS
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

FILES = {"halves.py": SOURCE, "test_halves.py": TESTS, ".gitignore": "__pycache__/\n"}


@dataclass(frozen=True)
class Ground:
    """A finished run, whose repository is made hostile and used again."""

    folder: Path
    run: Run
    history: History
    provider: Provider

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def canary(self) -> Path:
        return self.folder / "ran"

    def prepare(self, kind: Hostile) -> None:
        """The repository as it was, made hostile."""
        for left in (self.repo, self.folder / "elsewhere"):
            shutil.rmtree(left, ignore_errors=True)
        shutil.copytree(self.folder / "template", self.repo, symlinks=True)
        kind.make(self.repo, str(self.folder / "program"))
        self.canary.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def ground(namespaces: Path, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("ground")
    (folder / "program").write_text(f'#!/bin/sh\ntouch {folder}/ran\n[ "$1" = filter ] && exec cat\nexit 0\n')
    (folder / "program").chmod(0o755)
    template(folder / "template", FILES)
    repo = shutil.copytree(folder / "template", folder / "repo", symlinks=True)
    wanted = task(repo, base=git(repo, "rev-parse", "HEAD").strip(), test_command="python -m pytest -q")
    with Run.open(folder / "run") as run, namespace_provider(folder / "run" / "store") as provider:
        solve(
            wanted,
            Components(provider, Doing((LOW,)), Planned((Choice(0),)), PassingTests(), Budget(), baseline_runs=1),
            run,
        )
        yield Ground(folder, run, keep(run, lambda: nullcontext(provider)), provider)


def inspected(ground: Ground) -> None:
    assert checkout.inspect(ground.repo).head


def applied(ground: Ground) -> None:
    before = (ground.repo / "kept" / "a.py").read_text()
    checkout.apply(ground.repo, (ground.folder / PATCH).read_bytes(), ground.folder / "run")
    assert (ground.repo / "kept" / "a.py").read_text() != before


def copied_in(ground: Ground) -> None:
    base = ground.provider.create(Workspace(path=ground.repo, mount="/workspace"))
    ground.provider.discard(base)


def checked(ground: Ground) -> None:
    assert check(ground.repo, (ground.folder / PATCH).read_bytes()) == ()


def logged(ground: Ground) -> None:
    shutil.rmtree(ground.folder / "run" / HISTORY)
    history = keep(ground.run, lambda: nullcontext(ground.provider))
    assert history.missing == {}
    history.git.run("log", "--oneline", "--all")


def promoted(ground: Ground) -> None:
    promote(ground.run, ground.history, 1, "promoted", ground.repo)
    assert git(ground.folder / "template", "rev-parse", "HEAD").strip()
    found = locate(ground.repo)
    assert found
    with opened(found) as view:
        assert view.commit("promoted^") == view.commit()


def cloned(ground: Ground) -> None:
    clones.clone(ground.repo, "", ground.folder / "clone")
    assert (ground.folder / "clone" / "halves.py").read_text() == SOURCE


WAYS_IN: tuple[Callable[[Ground], None], ...] = (inspected, applied, copied_in, checked, logged, promoted, cloned)


@pytest.mark.parametrize("name", slow_but(sorted(HOSTILE)[::3], HOSTILE))
def test_no_program_of_a_repository_runs_on_the_host(ground: Ground, name: str) -> None:
    kind, ran = HOSTILE[name], []
    refused = () if kind.whole else (RamifyError, SandboxError, InstanceBroken)
    for enter in WAYS_IN:
        ground.prepare(kind)
        with suppress(*refused):
            if kind.make is HOSTILE["diff.external"].make and enter is applied:
                continue  # its file has changed
            enter(ground)
        if ground.canary.exists():
            ran.append(enter.__name__)
    assert ran == []


@pytest.mark.parametrize("name", [*HOSTILE, "all at once"])
def test_plain_git_runs_it(ground: Ground, name: str) -> None:
    """What the test above shows is no accident of how the repository was made."""
    kind = HOSTILE.get(name, ALL_AT_ONCE)
    for command in kind.controls:
        ground.prepare(kind)
        seen(ground.repo, command)
        assert ground.canary.exists(), command


@pytest.mark.slow
def test_a_whole_repair_of_a_hostile_repository_runs_none_of_its_programs_and_is_applied(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repo = means(tmp_path / "repo")
    ALL_AT_ONCE.make(repo, str(ground.folder / "program"))
    ground.canary.unlink(missing_ok=True)
    plain = ("-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}')
    done = CliRunner().invoke(
        app,
        ["fix", GOAL, "--repo", str(repo), "--sandbox", "namespace", "--apply", *plain, "-c", "budget.max_nodes=60"],
    )
    assert done.exit_code == 0, done.stderr
    assert (repo / "means.py").read_text() != MEANS
    assert (repo / "test_means.py").read_text() == MEANS_TESTS
    assert not ground.canary.exists()


def test_a_program_git_in_the_repository_is_not_taken_for_git(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(repo: Path, program: str) -> None:
        hook(repo, program, "git")

    ground.prepare(Hostile(make))
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    inspected(ground)
    assert not ground.canary.exists()
    subprocess.run(["git", "status"], cwd=ground.repo, capture_output=True)
    assert ground.canary.exists()


def test_a_run_from_somebody_else_brings_no_hooks_along(ground: Ground, tmp_path: Path) -> None:
    history = ground.folder / "run" / HISTORY
    hook(history / "hooks", str(ground.folder / "program"), "reference-transaction")
    ground.canary.unlink(missing_ok=True)
    for commit in git(history, "for-each-ref", "--format=delete %(refname)").splitlines():
        (history / commit.removeprefix("delete ")).unlink(missing_ok=True)
    assert keep(ground.run, lambda: nullcontext(ground.provider)).missing == {}
    assert not ground.canary.exists()
    git(history, "update-ref", "refs/heads/x", git(history, "rev-parse", "refs/ramify/nodes/0").strip())
    assert ground.canary.exists()
    shutil.rmtree(history)


@pytest.mark.parametrize("part", ["config", "refs", "refs/ramify", "commondir"])
def test_a_history_that_leads_elsewhere_is_refused_and_nothing_there_is_written(
    ground: Ground, tmp_path: Path, part: str
) -> None:
    history = ground.folder / "run" / HISTORY
    shutil.rmtree(history, ignore_errors=True)
    (history / part).parent.mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "poetry.lock").touch()
    (history / part).symlink_to(tmp_path / "mine")
    with pytest.raises(SandboxError, match=f"{part} leads out of the run's history"):
        keep(ground.run, lambda: nullcontext(ground.provider))
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["poetry.lock"]
    shutil.rmtree(history)


class TestAFolderOfStrangers:
    """A source distribution or a folder of a benchmark, which is made a repository."""

    def test_brings_no_settings_along(self, ground: Ground, tmp_path: Path) -> None:
        for control in (False, True):
            folder = template(tmp_path / str(control) / "folder", FILES)
            clean_by_info(folder, str(ground.folder / "program"))
            ground.canary.unlink(missing_ok=True)
            os.utime(folder / "halves.py", (0, 0))
            git(folder, "add", "-A") if control else clones.create(folder)
            assert ground.canary.exists() == control

    def test_brings_no_settings_of_a_repository_inside_it_along(self, ground: Ground, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        inner = template(folder / "inner", FILES)
        clones.create(folder)
        clean_by_info(inner, str(ground.folder / "program"))
        os.utime(inner / "halves.py", (0, 0))
        ground.canary.unlink(missing_ok=True)
        clones.seal(folder)
        assert not ground.canary.exists()
        assert git(folder, "ls-tree", "HEAD", "inner").startswith("160000 ")
        git(folder, "add", "-A")
        assert ground.canary.exists()
