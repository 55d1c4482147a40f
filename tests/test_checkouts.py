"""Ramify answers in every kind of checkout: its patch is found and applied, or one sentence says what to do first."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.cli.checkout import apply, inspect
from agent.evaluate.verification import apply_patch
from agent.run.paths import store_of
from agent.run.run import Run
from sandboxes import Provider, SandboxError, Workspace
from sandboxes.namespace.provider import namespace_provider
from tests import commands
from tests.checkouts import (
    BY_COMMAND,
    DAMAGED,
    ELSEWHERE,
    OTHERS,
    in_the_midst_of_a_merge,
    linked_worktree,
    of_another_user,
    plain,
    sparse_index,
    split_index,
    submodule,
)
from tests.projects import BUG, FIX, GOAL, git
from tests.tiers import slow_but

Build = Callable[[Path], Path]
Facts = tuple[int, int, str]

ROOT = Path(__file__).parent.parent
PLAIN = ("-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}', "-c", "measure.baseline_runs=1")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty directory for a checkout and what belongs to it."""
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


def fix(checkout: Path, run: Path, environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    command = ("fix", GOAL, "--repo", checkout, "--out", run, "--apply", *PLAIN, *options)
    return commands.ramify(command, cwd=run.parent, env=environment)


def contents(directory: Path) -> dict[str, Facts]:
    """Mode, owner and digest of everything below."""
    found = {}
    for path in directory.rglob("*"):
        facts = path.lstat()
        data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(directory))] = (facts.st_mode, facts.st_uid, hashlib.sha256(data).hexdigest())
    return found


def changed(before: dict[str, Facts], after: dict[str, Facts]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def differs(checkout: Path) -> list[str]:
    """The lines that git itself says were changed."""
    command = ["git", "-c", "safe.directory=*", "-c", "diff.autoRefreshIndex=false", "diff", "-U0"]
    said = subprocess.run(command, cwd=checkout, capture_output=True, check=True, text=True).stdout
    return sorted(
        line
        for line in said.replace("\r", "").splitlines()
        if line[:1] in ("+", "-") and line[:4] != "+++ " and line[:4] != "--- "
    )


def made(build: Build, here: Path) -> Path:
    if build is of_another_user and os.geteuid():
        pytest.skip("only root can give files away")
    return build(here)


@contextmanager
def repaired(checkout: Path, here: Path) -> Iterator[None]:
    """The block leaves the fix in the checkout, and everything else as it was."""
    differed, before = differs(checkout) if not filtered(here) else [], contents(here)
    yield
    path = (checkout / "means.py").relative_to(here)
    after = contents(here)
    assert changed(before, after) == {str(path)}
    assert after[str(path)][:2] == before[str(path)][:2]
    assert differs(checkout) == sorted([f"-{BUG.rstrip()}", f"+{FIX.rstrip()}", *differed])


def filtered(here: Path) -> bool:
    """git itself would run a filter, which leaves a mark."""
    return (here / "pointer").exists()


@pytest.mark.namespace
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("build", slow_but(BY_COMMAND[:1], BY_COMMAND), ids=lambda build: build.__name__)
def test_the_command_fixes_a_bug_in_a_checkout_of_each_kind_and_changes_nothing_else(
    build: Build, here: Path, environment: dict[str, str]
) -> None:
    checkout = made(build, here)
    with repaired(checkout, here):
        done = fix(checkout, here.parent / "run", environment)
        assert done.returncode == 0, done.stderr


@pytest.mark.docker
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("build", [linked_worktree, sparse_index], ids=lambda build: build.__name__)
def test_a_bug_is_fixed_where_the_sandbox_is_a_container(build: Build, here: Path, environment: dict[str, str]) -> None:
    checkout = made(build, here)
    with repaired(checkout, here):
        done = fix(checkout, here.parent / "run", environment, "--sandbox", "docker")
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.namespace
def test_a_process_of_its_own_fixes_a_linked_worktree(here: Path, environment: dict[str, str]) -> None:
    checkout = linked_worktree(here)
    command = [sys.executable, "-m", "agent", "fix", GOAL, "--apply", "--json", *PLAIN]
    with repaired(checkout, here):
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.namespace
@pytest.mark.parametrize("build", OTHERS, ids=lambda build: build.__name__)
def test_a_patch_is_made_checked_and_applied_in_every_other_kind_of_checkout(
    build: Build, here: Path, provider: Provider
) -> None:
    checkout = made(build, here)
    with repaired(checkout, here):
        found = inspect(checkout)
        assert found.dirty == (build in (split_index, in_the_midst_of_a_merge))
        assert found.head
        base = provider.create(Workspace(path=checkout))
        with provider.at(base) as box:
            box.write("means.py", box.read("means.py").replace(BUG.encode(), FIX.encode()))
            fixed = box.snapshot()
        patch = provider.diff(base, fixed)
        patched, why = apply_patch(provider, base, patch)
        assert patched is not None, why
        assert patched.digest == fixed.digest
        apply(checkout, patch, here.parent / "run")


@pytest.mark.parametrize("build", DAMAGED, ids=lambda build: build.__name__)
def test_a_damaged_checkout_is_refused_with_one_sentence_before_anything_is_searched(build, here, environment):
    checkout = build(here)
    before = contents(here)
    done = fix(checkout, here.parent / "run", environment)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ramify: --repo {checkout} ")
    assert f"repair what `git -C {checkout} status` complains about, or clone" in line
    assert "/tmp/ramify-git" not in line
    assert not (here.parent / "run").exists()
    assert contents(here) == before


READING = (
    "git log --oneline --all",
    "git status --porcelain",
    "git diff HEAD",
    "git ls-files --stage",
    "git describe --always --dirty",
    "git check-ignore __pycache__/x",
)


def inside(provider: Provider, checkout: Path, command: str) -> str:
    with provider.at(provider.create(Workspace(path=checkout))) as box:
        done = box.exec(["/bin/sh", "-c", command], timeout_s=60)
        return (done.stdout + done.stderr).decode()


def outside(checkout: Path, command: str) -> str:
    return subprocess.run(command, shell=True, cwd=checkout, capture_output=True, text=True, check=True).stdout


@pytest.mark.namespace
@pytest.mark.parametrize("build", ELSEWHERE, ids=lambda build: build.__name__)
def test_git_says_in_the_sandbox_what_it_says_in_the_checkout(build: Build, here: Path, provider: Provider) -> None:
    checkout = build(here)
    (checkout / "means.py").write_text("changed\n")
    (checkout / "staged.txt").write_text("staged\n")
    (checkout / "untracked.txt").write_text("untracked\n")
    outside(checkout, "git add --sparse staged.txt; echo '*.log' >$(git rev-parse --git-path info/exclude)")
    command = "; ".join((*READING, "git check-ignore x.log"))
    assert inside(provider, checkout, command) == outside(checkout, command)


@pytest.mark.namespace
def test_submodules_of_a_linked_worktree_are_repositories_in_the_sandbox(here: Path, provider: Provider) -> None:
    outer = submodule(here).parent
    git(outer, "worktree", "add", "-q", "../wt")
    git(here / "wt", "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
    (here / "wt" / "sub" / "means.py").write_text("changed\n")
    command = "git status --porcelain; git submodule status; cd sub; git status --porcelain; git log --oneline"
    said = inside(provider, here / "wt", command)
    assert said == outside(here / "wt", command)
    assert " M sub\n" in said


@pytest.mark.namespace
def test_only_what_git_reads_is_copied_from_another_place(here: Path, provider: Provider) -> None:
    checkout = linked_worktree(here)
    common = here / "repo" / ".git"
    for name in (
        "hooks/post-checkout",
        "logs/refs/heads/main",
        "secret",
        "worktrees/other/index",
        "modules/other/HEAD",
    ):
        (common / name).parent.mkdir(parents=True, exist_ok=True)
        (common / name).write_text("secret\n")
    (common / "refs" / "link").symlink_to(here / "secret")
    said = inside(provider, checkout, "find .git -type f | grep -v ^.git/objects; cat .git/refs/link")
    names = {"config", "HEAD", "index", "info/exclude", "refs/heads/main", "refs/heads/side"}
    assert set(said.splitlines()) - {"cat: .git/refs/link: No such file or directory"} == {f".git/{n}" for n in names}


def forged_worktree(private: Path, checkout: Path) -> None:
    (checkout / ".git").write_text(f"gitdir: {private / '.git'}\n")


def forged_common_directory(private: Path, checkout: Path) -> None:
    git_dir = checkout.parent / "forged" / "worktrees" / "x"
    git_dir.mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    (git_dir / "commondir").write_text(f"{private / '.git'}\n")
    (git_dir / "gitdir").write_text(f"{checkout / '.git'}\n")
    (checkout / ".git").write_text(f"gitdir: {git_dir}\n")


def forged_links(private: Path, checkout: Path) -> None:
    git_dir = checkout.parent / "forged"
    git_dir.mkdir()
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    (git_dir / "config").write_text(f"[core]\n\tworktree = {checkout}\n")
    for name in ("objects", "refs"):
        (git_dir / name).symlink_to(private / ".git" / name)
    (checkout / ".git").write_text(f"gitdir: {git_dir}\n")


@pytest.mark.namespace
@pytest.mark.parametrize("forge", [forged_worktree, forged_common_directory, forged_links], ids=lambda f: f.__name__)
def test_a_git_file_brings_no_repository_into_the_sandbox_that_does_not_know_of_it(
    forge: Callable[[Path, Path], None], here: Path, provider: Provider
) -> None:
    private, checkout = plain(here), here / "checkout"
    checkout.mkdir()
    forge(private, checkout)
    secret = outside(private, "git rev-parse HEAD:means.py").strip()
    found = inside(
        provider, checkout, f"find . -path '*{secret[:2]}/{secret[2:]}*'; git cat-file -p {secret} 2>/dev/null"
    )
    assert found == ""


@pytest.mark.namespace
def test_a_patch_applies_in_a_sandbox_whatever_repository_is_around_it(here: Path, provider: Provider) -> None:
    checkout = plain(here)
    (checkout / ".gitattributes").write_text("*.py text eol=crlf working-tree-encoding=UTF-16 ident\n")
    git(checkout, "config", "apply.whitespace", "error-all")
    base = provider.create(Workspace(path=checkout))
    with provider.at(base) as box:
        above = "cd ..; git init -q; echo '*.py text eol=crlf' >.gitattributes; git config --global core.autocrlf true"
        assert box.exec(["/bin/sh", "-c", above], timeout_s=60).exit_code == 0
        box.exec(["rm", "-rf", ".git"], timeout_s=60)
        around = box.snapshot()
        box.write("means.py", box.read("means.py").replace(BUG.encode(), b"    # $Id$   \n" + FIX.encode()))
        box.write("new.py", b"new\r\n\n")
        edited = box.snapshot()
    for below in (base, around):
        patched, why = apply_patch(provider, below, provider.diff(around, edited))
        assert patched is not None, why
        with provider.at(patched) as box, provider.at(edited) as other:
            for name in ("means.py", "new.py"):
                assert box.read(name) == other.read(name)


@pytest.mark.slow
@pytest.mark.namespace
def test_runs_that_are_kept_in_the_checkout_are_not_copied(here: Path, environment: dict[str, str]) -> None:
    checkout = plain(here)
    (checkout / "runs").mkdir()
    for name in ("runs/first", "runs/second"):
        done = fix(checkout, checkout / name, environment)
        assert done.returncode == 0, done.stderr
        git(checkout, "checkout", "-q", "means.py")
    second = checkout / "runs" / "second"
    with (
        Run.read(second) as run,
        namespace_provider(store_of(second)) as provider,
        provider.at(run.tree.root.snapshot) as box,
    ):
        said = box.exec(["find", ".", "-path", "./runs*"], timeout_s=60).stdout
    assert said == b"./runs\n"


@pytest.mark.namespace
def test_what_only_looks_like_a_run_and_is_tracked_is_copied(here: Path, provider: Provider) -> None:
    checkout = plain(here)
    for name in ("sample/journal.jsonl", "sample/blobs/x"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("{}\n")
    find = "find sample | sort"
    assert "No such file" in inside(provider, checkout, find)
    git(checkout, "add", "-A")
    assert inside(provider, checkout, find) == "sample\nsample/blobs\nsample/blobs/x\nsample/journal.jsonl\n"


@pytest.mark.slow
@pytest.mark.namespace
def test_folders_that_are_nested_deeper_than_python_calls_functions_are_named(here: Path, provider: Provider) -> None:
    checkout = plain(here)
    nest = "i=0; while [ $i -lt 1100 ]; do mkdir d; cd -P d; i=$((i+1)); done"
    subprocess.run(["sh", "-c", nest], cwd=checkout, check=True)
    try:
        with pytest.raises(SandboxError) as refused:
            provider.create(Workspace(path=checkout))
    finally:
        subprocess.run(["rm", "-rf", checkout / "d"], check=True)  # pytest could not
    assert f"cannot copy {checkout} into the sandbox: directories are nested more than 200 deep" in str(refused.value)


@pytest.mark.slow
@pytest.mark.namespace
def test_a_run_is_applied_later_only_where_its_files_are_as_they_were(here: Path, environment: dict[str, str]) -> None:
    checkout, run = linked_worktree(here), here.parent / "run"

    def ramify(*command: object) -> subprocess.CompletedProcess[str]:
        return commands.ramify(command, cwd=here.parent, env=environment)

    assert ramify("fix", GOAL, "--repo", checkout, "--out", run, *PLAIN).returncode == 0
    original = (checkout / "means.py").read_text()
    (checkout / "means.py").write_text(original + "\n# mine\n")
    refused = ramify("resume", run, "--apply")
    assert refused.returncode == 2
    assert "means.py changed since the run began" in refused.stderr.splitlines()[-1]
    assert (checkout / "means.py").read_text() == original + "\n# mine\n"

    git(checkout, "commit", "-qam", "mine")
    patch = ramify("show", run, "--patch").stdout
    subprocess.run(["git", "-C", checkout, "apply", "--3way"], input=patch, text=True, check=True, capture_output=True)
    assert (checkout / "means.py").read_text() == original.replace(BUG, FIX) + "\n# mine\n"

    (checkout / "means.py").write_text(original)
    (checkout / "other.py").write_text("mine\n")
    assert ramify("resume", run, "--apply").returncode == 0
    assert (checkout / "means.py").read_text() == original.replace(BUG, FIX)
