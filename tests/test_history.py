"""A search is a real git history: a commit a state, whose files are the state's; a state becomes a branch on demand."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from agent.actions import Write
from agent.analysis.history import HISTORY, NODES
from agent.analysis.history.exchanging import RUNS, GitExchange
from agent.budget import Budget
from agent.cli.app import app
from agent.engine.components import Components
from agent.errors import PolicyError, UsageError
from agent.evaluate.value.tests import PassingTests
from agent.measure.measurer import find_baseline
from agent.run.commands import Order
from agent.run.events import Added, Noted, Started, Steered
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.solver.solve import solve
from sandboxes import Snapshot, Workspace
from sandboxes.namespace.provider import namespace_provider
from tests import commands
from tests.halves import HIGH, LOW, SPOILT, Doing, Planned, halves
from tests.projects import git, task

pytestmark = pytest.mark.namespace

AUTHOR = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "core.fsmonitor=false")
CHOICES = (Choice(0), Choice(0), Choice(0), Choice(2, act="fuse", other=3))


@pytest.fixture(scope="module")
def searched(namespaces, tmp_path_factory):
    """A search of four states below the base, the last of which is two of them merged."""
    folder = tmp_path_factory.mktemp("searched")
    repo = halves(folder / "repo")
    (repo / "link").symlink_to("halves.py")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / ".gitignore").write_text("# byte code is not ignored\n")
    git(repo, "add", "-A")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},submodule")
    git(repo, "commit", "-qm", "more")
    (repo / "untracked.bin").write_bytes(b"\0\xff\r\n")
    wanted = task(repo, base=git(repo, "rev-parse", "HEAD").strip(), test_command="python -m pytest -q")
    with Run.open(folder / "run") as run, namespace_provider(folder / "run" / "store") as provider:
        search = Planned(CHOICES)
        solve(
            wanted,
            Components(provider, Doing((SPOILT, LOW, HIGH)), search, PassingTests(), Budget(), baseline_runs=1),
            run,
        )
    assert ramify("log", folder / "run").stderr == ""
    return folder


@pytest.fixture
def run(searched, tmp_path):
    """A copy of it, whose states are where they were, with its history."""
    shutil.copytree(searched / "run", tmp_path / "run", ignore=shutil.ignore_patterns("store"))
    (tmp_path / "run" / "store").symlink_to(searched / "run" / "store")
    return tmp_path / "run"


@pytest.fixture
def fresh(run):
    """Without its history."""
    shutil.rmtree(run / HISTORY)
    return run


def ramify(*argv):
    return CliRunner().invoke(app, [str(each) for each in argv], catch_exceptions=False)


def history(run, *command):
    return git(run / HISTORY, *command)


def nodes(run):
    """The states in the history that is shown, by their trailers."""
    said = history(run, "log", f"--glob={NODES}", "--format=%(trailers:key=Ramify-Node,valueonly,separator=%x2C)")
    return sorted(int(line) for line in said.splitlines() if line)


def refs(run):
    listing = history(run, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(map(str.split, listing))


def at(run, number, place):
    """The files of a node's commit."""
    place.mkdir()
    archive = subprocess.run(
        ["git", "-C", run / HISTORY, "archive", f"{NODES}/{number}"], capture_output=True, check=True
    )
    subprocess.run(["tar", "x", "-C", place], input=archive.stdout, check=True)
    return place


class TestTheHistory:
    @pytest.mark.slow
    def test_has_a_commit_for_each_state_with_the_states_that_it_came_of_as_parents(self, run, searched):
        with contextlib.chdir(run.parent):
            drawn = ramify("log", run.name, "--graph")
        with Run.read(run) as opened:
            assert nodes(run) == [each.id for each in opened.tree] == [0, 1, 2, 3, 4]
            lines = {f"{each.id} {each.value:.3f}" for each in opened.tree}
        assert set(re.findall(r"\* .*?[0-9a-f]{7,} (\d \d\.\d{3}) (?:goal|\d passed)", drawn.stdout)) == lines
        made = refs(run)
        parents = {
            number: history(run, "show", "-s", "--format=%P", f"{NODES}/{number}").split() for number in nodes(run)
        }
        of = {number: [made[f"{NODES}/{parent}"] for parent in above] for number, above in ((1, [0]), (4, [2, 3]))}
        assert {number: parents[number] for number in of} == of
        assert history(run, "ls-tree", f"{NODES}/4", "submodule").startswith("160000 ")
        assert parents[0] == [git(searched / "repo", "rev-parse", "HEAD").strip()]
        fsck = subprocess.run(["git", "-C", run / HISTORY, "fsck", "--strict"], capture_output=True, text=True)
        assert (fsck.returncode, [line for line in fsck.stderr.splitlines() if "unborn" not in line]) == (0, [])

    @pytest.mark.slow
    def test_has_in_each_commit_the_files_of_the_state_which_test_as_was_recorded(
        self, run, searched, provider, tmp_path
    ):
        with Run.read(run) as opened:
            for each in (opened.tree[1], opened.tree[4]):
                place = at(run, each.id, tmp_path / str(each.id))
                assert (place / "untracked.bin").read_bytes() == b"\0\xff\r\n"
                assert (place / "link").readlink() == Path("halves.py")
                assert (place / "run.sh").stat().st_mode & 0o111
                assert not list(place.rglob("*.pyc"))
                wanted = task(searched / "repo")
                wanted = replace(wanted, workspace=Workspace(path=place, mount="/workspace", env=wanted.workspace.env))
                report = find_baseline(provider, wanted, provider.create(wanted.workspace), runs=1)
                seen = [*each.report.passes, *each.report.failures]
                assert seen
                assert [report.outcome(test) for test in seen] == [each.report.outcome(test) for test in seen]

    @pytest.mark.slow
    def test_is_brought_up_to_date_while_the_run_is_searched_and_nothing_is_made_twice(self, run):
        before = refs(run)
        with Run.open(run) as held:
            held.record(Added(replace(held.tree[1], id=5, parents=(1,), label="again\n\nRamify-Node: 9")))
            assert ramify("log", run).stdout.count("\n") == 7
        assert nodes(run) == [0, 1, 2, 3, 4, 5]
        after = refs(run)
        assert before.items() <= after.items()
        assert after.keys() - before.keys() == {f"{NODES}/5"}

    def test_loses_no_node_to_two_processes_that_write_it_at_once(self, fresh):
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(commands.ramify, ["log", fresh], cwd=fresh, env=os.environ) for _ in range(2)]
        first, second = (done.result().stdout for done in both)
        assert first == second
        assert nodes(fresh) == [0, 1, 2, 3, 4]

    def test_goes_on_where_a_process_was_killed(self, run):
        """In the middle of a write of a ref, which leaves git's lock."""
        before = refs(run)
        history(run, "update-ref", "-d", f"{NODES}/3")
        (run / HISTORY / NODES / "3.lock").touch()
        assert ramify("log", run).exit_code == 0
        assert refs(run) == before

    def test_can_be_fetched_into_a_clone(self, run, searched, tmp_path):
        git(tmp_path, "clone", "-q", searched / "repo", "clone")
        git(tmp_path / "clone", "fetch", "-q", str(run / HISTORY), "refs/ramify/*:refs/ramify/*")
        assert git(tmp_path / "clone", "log", "--oneline", f"{NODES}/4").count("\n") == 6
        assert not (tmp_path / "clone" / ".git" / "shallow").exists()
        git(tmp_path / "clone", "fsck", "--strict")


class TestPruning:
    def test_removes_refs_only(self, run):
        before = refs(run)
        with Run.open(run) as opened:
            opened.record(Steered(Order("prune", 1)))
        ramify("log", run)
        assert nodes(run) == [0, 2, 3, 4]
        gone = before[f"{NODES}/1"]
        assert (gone in refs(run).values(), history(run, "cat-file", "-t", gone)) == (True, "commit\n")
        assert ramify("log", run).stderr == ""


class TestWhatIsNotKnown:
    def test_a_state_that_was_given_up_is_made_of_its_patch(self, run):
        whole = refs(run)
        shutil.rmtree(run / HISTORY)
        with Run.open(run) as opened, namespace_provider(run / "store") as provider:
            patch = provider.diff(opened.tree[0].snapshot, opened.tree[1].snapshot)
            opened.record(Noted(1, "discarded", {"patch": opened.journal.put_blob(patch)}))
            lost = replace(opened.tree[1], id=5, snapshot=replace(opened.tree[1].snapshot, id="rootfs/none"))
            opened.record(Added(lost))
            opened.record(Added(replace(opened.tree[2], id=6, parents=(5,), label="\x1b[2Jmerged\x08\n\x07both")))
        said = ramify("log", run)
        assert "state 5 has no commit: " in said.stderr
        assert "merged\\x08 \\x07both\n" in said.stdout
        assert "\x1b" not in said.stdout
        assert nodes(run) == [0, 1, 2, 3, 4, 6]
        assert whole.items() <= refs(run).items()
        assert history(run, "show", "-s", "--format=%P", f"{NODES}/6").strip() == whole[f"{NODES}/0"]
        assert "Ramify-Parents: 5" in history(run, "show", "-s", f"{NODES}/6")

    def test_without_states_nothing_is_invented(self, fresh):
        (fresh / "store").unlink()
        said = ramify("log", fresh)
        assert (said.exit_code, said.stdout) == (0, "")
        assert [line.split(":")[0] for line in said.stderr.splitlines()] == [
            f"state {n} has no commit" for n in range(5)
        ]
        assert "its state was removed" in said.stderr


class TestPromoting:
    def test_makes_a_branch_of_a_state_and_checks_nothing_out(self, run, searched, tmp_path):
        git(tmp_path, "clone", "-q", searched / "repo", "clone")
        clone = tmp_path / "clone"
        (clone / "halves.py").write_text("mine")
        git(clone, "add", "-A")
        before = [git(clone, *command) for command in (["status", "--porcelain"], ["rev-parse", "HEAD"], ["branch"])]
        said = ramify("promote", run, 4, "--branch", "fixed", "--repo", clone)
        assert said.exit_code == 0
        assert said.stderr == "the branch also holds what was not committed when the run began: untracked.bin\n"
        assert git(clone, "log", "-1", "--format=%s", "fixed").strip() == "fuse 2 + 3"
        after = [git(clone, *command) for command in (["status", "--porcelain"], ["rev-parse", "HEAD"], ["branch"])]
        assert after == [*before[:2], "  fixed\n" + before[2]]
        assert git(clone, "rev-parse", "fixed^") == git(clone, "rev-parse", "HEAD")
        assert git(clone, "rev-parse", "fixed^{tree}") == history(run, "rev-parse", f"{NODES}/4^{{tree}}")
        assert "Ramify-Node: 4" in git(clone, "log", "-1", "fixed")

    @pytest.mark.parametrize(
        ("node", "branch", "fragments"),
        [
            (9, "new", ("there is no state 9", "states 0 to 4")),
            (4, "main", ("--branch main exists", "choose another name")),
            (4, "..", ("--branch ..", "not a valid branch name")),
        ],
    )
    def test_what_cannot_be_done_is_refused(self, run, searched, node, branch, fragments):
        with pytest.raises(UsageError) as refused:
            ramify("promote", run, node, "--branch", branch)
        assert all(fragment in str(refused.value) for fragment in fragments)
        assert git(searched / "repo", "branch").split() == ["*", "main"]

    def test_a_run_without_a_checkout_says_what_to_do_instead(self, tmp_path):
        with Run.open(tmp_path / "run") as opened:
            task = {"id": "a", "statement": "b", "test_command": "true", "workspace": {"path": None}}
            opened.record(Started(task, {}, Snapshot("0", "0")))
        with pytest.raises(
            UsageError, match=r"run did not begin from a checkout; name the repository for the branch: --repo DIR"
        ):
            ramify("promote", tmp_path / "run", 0, "--branch", "new")
        with pytest.raises(UsageError, match=r"leave out --apply, .*: ramify show .*run --patch"):
            ramify("resume", tmp_path / "run", "--apply")

    def test_a_repository_without_the_base_commit_is_refused(self, run, tmp_path):
        with pytest.raises(UsageError, match=r"has no commit .* which the run began from"):
            ramify("promote", run, 4, "--branch", "new", "--repo", halves(tmp_path / "other"))


class TestTheExchange:
    """Of states with other runs, by a git repository that anybody may have written to."""

    @pytest.fixture
    def shared(self, run, tmp_path):
        """A repository to which a run has pushed its states, with a hook that git runs when a ref is written."""
        meet(run, tmp_path / "shared.git")
        shutil.copytree(run, tmp_path / "other", symlinks=True)
        hook = tmp_path / "shared.git" / "hooks" / "reference-transaction"
        hook.parent.mkdir()
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
        return tmp_path / "shared.git"

    def test_brings_in_no_state_that_the_run_has(self, shared, tmp_path):
        assert meet(tmp_path / "other", shared).next() is None

    def test_brings_in_the_best_of_another_run_once_and_runs_no_program(self, shared, tmp_path):
        commit = pushed(shared, "halves.py", b"new = 1\n")
        exchange = meet(tmp_path / "other", shared)
        choice = exchange.next()
        assert choice.hint == commit
        assert exchange.next() is None
        (action,) = exchange.propose(position(choice), Random(0)).actions
        assert action == Write("halves.py", "new = 1\n")
        assert f"{RUNS}/" in git(shared, "for-each-ref")
        assert not (tmp_path / "ran").exists()

    def test_brings_in_none_of_a_run_that_began_from_other_files(self, shared, tmp_path):
        pushed(shared, "halves.py", b"new = 1\n", base=b"other = 1\n")
        assert meet(tmp_path / "other", shared).next() is None

    @pytest.mark.parametrize(("content", "mode", "why"), [
        (b"/etc/passwd", "120000", "is not a file"),
        (b"\xff", "100644", "is not text"),
        (b"x" * (2 << 20), "100644", "1 MiB"),
    ])  # fmt: skip
    def test_refuses_what_is_no_text_or_too_much(self, content, mode, why, shared, tmp_path):
        pushed(shared, "halves.py", content, mode=mode)
        exchange = meet(tmp_path / "other", shared)
        with pytest.raises(PolicyError, match=why):
            exchange.propose(position(exchange.next()), Random(0))

    def test_goes_on_without_a_repository_that_is_none(self, run, tmp_path, caplog):
        (tmp_path / "shared.git").write_text("")
        assert meet(run, tmp_path / "shared.git").next() is None
        assert "states cannot be exchanged" in caplog.text


def meet(run, shared):
    exchange = GitExchange(shared)
    with Run.read(run) as opened:
        exchange.sync(opened, None)
    return exchange


def position(choice):
    return SimpleNamespace(hint=choice.hint)


def pushed(shared, path, content, mode="100644", base=None):
    """The commit of a state of a third run, which changes this file of the base state."""
    root = git(shared, "for-each-ref", "--format=%(objectname)", f"{RUNS}/*/0").strip()
    if base is not None:
        root = committed(shared, root, path, base, "100644", "Ramify-Node: 0\nRamify-Value: 0.1000")
    commit = committed(shared, root, path, content, mode, "Ramify-Node: 1\nRamify-Value: 0.9999", "-p", root)
    for number, name in enumerate((root, commit)):
        git(shared, "-c", "core.hooksPath=/dev/null", "update-ref", f"{RUNS}/{'a' * 12}/{number}", name)
    return commit


def committed(shared, tree, path, content, mode, trailers, *options):
    index = {"GIT_INDEX_FILE": str(shared / "index"), "GIT_DIR": str(shared)}

    def plumb(*command, stdin=b""):
        done = subprocess.run(["git", *AUTHOR, *command], input=stdin, env={**os.environ, **index}, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().strip()

    plumb("read-tree", tree)
    plumb("update-index", "--cacheinfo", f"{mode},{plumb('hash-object', '-w', '--stdin', stdin=content)},{path}")
    return plumb("commit-tree", plumb("write-tree"), *options, stdin=f"A state\n\n{trailers}\n".encode())
