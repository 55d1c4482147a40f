"""The runs of a user: `ramify runs` lists them, and commands take them by name, or the last one."""

import json
import os
import subprocess

import pytest

from agent.run.events import Added, Ended, Started
from agent.run.run import Run
from agent.task import Task, dump_task
from sandboxes import Snapshot, Workspace
from tests import commands
from tests.trees import node

PLAIN = ("-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}', "-c", "measure.baseline_runs=1")
"""The tools of development are slow plugins."""
BLOBS = b"7d4290a117a4ddcc11daae7ea675841033830c8f..407de3068e7b5950585d5abed9776d104235a85d"
S0 = Snapshot("s0", "d0")
PATCH = b"diff --git a/a.py b/a.py\nindex " + BLOBS + b" 100644\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


@pytest.fixture
def environment(tmp_path):
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def ramify(tmp_path, environment):
    return lambda *argv: commands.ramify(argv, cwd=tmp_path, env=environment)


@pytest.fixture
def checkout(tmp_path):
    place = tmp_path / "shop"
    place.mkdir()
    (place / "a.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", place], check=True)
    return place


@pytest.fixture
def record(tmp_path, checkout):
    """Records a run of two states in the directory of runs, so many seconds ago."""

    def make(name, status="solved", statement="Totals are wrong.\nAlways.", goals=(), age_s=0.0):
        directory = tmp_path / "state" / "ramify" / "runs" / name
        task = Task("t", statement, Workspace(path=checkout), "pytest", goals)
        with Run.open(directory) as run:
            run.record(Started(dump_task(task), {}, Snapshot("s0", "d0")))
            run.record(Added(node(0, value=0.25)))
            run.record(Added(node(1, 0, value=1.0)))
            if status:
                run.record(Ended(status, "SOLVED", 1, True, run.journal.put_blob(PATCH), 2.0))
        changed = (directory / "journal.jsonl").stat().st_mtime - age_s
        os.utime(directory / "journal.jsonl", (changed, changed))
        return directory

    return make


class TestTheList:
    def test_it_is_empty_before_the_first_run_and_says_where_runs_would_be(self, ramify):
        assert ramify("runs").stdout.endswith("state/ramify/runs\n")
        assert ramify("runs", "--json").stdout == "[]\n"

    def test_the_newest_stands_first_with_its_repository_issue_status_and_age(self, ramify, record):
        record("older", status="", goals=("test_a.py::test_b",), statement="", age_s=7_300)
        record("newer", age_s=100)
        head, *rows = [line.split("  ") for line in ramify("runs").stdout.splitlines()]
        assert [cell.strip() for cell in head if cell] == ["run", "repository", "status", "age", "issue"]
        cells = [[cell.strip() for cell in row if cell] for row in rows]
        assert cells == [
            ["newer", "shop", "solved", "1 min", "Totals are wrong."],
            ["older", "shop", "not ended", "2 h", "test_a.py::test_b"],
        ]

    def test_it_is_one_json_array_when_asked_for(self, ramify, record, checkout):
        directory = record("newer", age_s=100)
        (line,) = json.loads(ramify("runs", "--json").stdout)
        assert 100 <= line.pop("age_s") < 10_000
        assert line == {
            "run": "newer", "repository": str(checkout), "issue": "Totals are wrong.", "status": "solved",
            "states": 2, "cost_usd": 0.0, "directory": str(directory),
        }  # fmt: skip

    def test_a_damaged_run_hides_no_other(self, ramify, record):
        (record("broken") / "journal.jsonl").write_text('{"kind": "nonsense"}\n{"kind": "nonsense"}\n')
        record("whole", age_s=10)
        assert {line["run"]: line["status"] for line in json.loads(ramify("runs", "--json").stdout)} == {
            "broken": "damaged",
            "whole": "solved",
        }

    def test_more_than_a_screen_of_them_are_listed_when_asked_for(self, ramify, record):
        for number in range(22):
            record(f"run-{number:02}", age_s=number)
        assert ramify("runs").stdout.splitlines()[-1] == "2 older runs: ramify runs --all"
        assert len(ramify("runs", "--all").stdout.splitlines()) == 23

    def test_the_runs_of_a_batch_are_listed_when_its_folder_is_named(self, ramify, record, tmp_path):
        record("mine")
        batch = tmp_path / "my nightly"
        batch.mkdir()
        for number in range(22):
            record(f"django-{number}", age_s=number).rename(batch / f"django-{number}")
        _, newest, *_, older = ramify("runs", batch).stdout.splitlines()
        assert newest.startswith(f"{batch}/django-0 ")
        assert older == f"2 older runs: ramify runs '{batch}' --all"
        refused = ramify("runs", tmp_path / "state")
        assert f"{tmp_path}/state is not a run and contains no runs" in refused.stderr
        assert "does not exist" in ramify("runs", tmp_path / "nope").stderr

    def test_an_issue_orders_a_terminal_nothing(self, ramify, record):
        record("run", statement="\x1b[2Jlook")
        assert "\x1b" not in ramify("runs").stdout


class TestNamingARun:
    def test_without_a_name_the_run_that_changed_last_is_meant(self, ramify, record):
        record("older", age_s=100)
        newer = record("newer", status="")
        assert f"ramify resume {newer}" in ramify("show").stdout
        assert f"ramify resume {newer}" in ramify("fork", "last", 1).stdout

    def test_a_run_that_was_refused_before_its_base_state_was_measured_is_not_the_last_one(
        self, ramify, record, checkout, tmp_path
    ):
        older = record("older", status="", age_s=100)
        for name, stop in (("refused", "FAILED"), ("empty", "")):
            with Run.open(tmp_path / "state" / "ramify" / "runs" / name) as run:
                if stop:
                    run.record(Started(dump_task(Task("t", "x", Workspace(path=checkout), "pytest")), {}, S0))
                    run.record(Ended("no_patch", stop, reason="there is no test 'a'"))
        said = ramify("show")
        assert f"ramify resume {older}" in said.stdout
        assert (
            said.stderr == "the last run, empty, did not begin: it recorded nothing; using the run before it, older\n"
        )
        assert {line["run"]: line["status"] for line in json.loads(ramify("runs", "--json").stdout)} == {
            "older": "not ended",
            "refused": "no_patch",
            "empty": "not begun",
        }

    def test_a_run_that_was_interrupted_before_its_base_state_was_measured_is_the_last_one(
        self, ramify, record, checkout, tmp_path
    ):
        record("older", age_s=100)
        with Run.open(tmp_path / "state" / "ramify" / "runs" / "newer") as run:
            run.record(Started(dump_task(Task("t", "x", Workspace(path=checkout), "pytest")), {}, S0))
            run.record(Ended("no_patch", "INTERRUPTED"))
        assert "no_patch: interrupted" in ramify("show").stdout

    def test_in_a_checkout_it_is_the_last_run_of_that_checkout(self, ramify, record, checkout, environment, tmp_path):
        mine = record("mine", status="", age_s=100)
        other = tmp_path / "other"
        subprocess.run(["git", "init", "-q", other], check=True)
        with Run.open(tmp_path / "state" / "ramify" / "runs" / "theirs") as run:
            run.record(Started(dump_task(Task("t", "x", Workspace(path=other), "pytest")), {}, S0))
            run.record(Ended("no_patch", "FAILED", reason="there is no test 'a'"))
        below = checkout / "docs"
        below.mkdir()
        assert f"ramify resume {mine}" in commands.ramify(["show"], cwd=below, env=environment).stdout
        refused = commands.ramify(["apply"], cwd=other, env=environment)
        assert refused.returncode == 2
        assert "the last run, theirs, did not begin: there is no test 'a'; `ramify runs` lists" in refused.stderr
        assert (checkout / "a.py").read_text() == "x = 1\n"

    def test_in_a_checkout_without_runs_no_other_run_is_meant(self, ramify, record, environment, tmp_path):
        record("theirs")
        subprocess.run(["git", "init", "-q", tmp_path / "other"], check=True)
        for command in ("apply", "show", "resume"):
            said = commands.ramify([command], cwd=tmp_path / "other", env=environment)
            assert (said.returncode, f"there is no run of {tmp_path / 'other'}" in said.stderr) == (2, True)

    def test_a_bare_name_is_enough_wherever_one_stands(self, ramify, record):
        older = record("older", status="", age_s=100)
        record("newer")
        assert f"ramify resume {older}" in ramify("show", "older").stdout
        assert f"ramify resume {older}" in ramify("prune", "older", 1).stdout

    def test_a_directory_goes_before_a_name(self, ramify, record, tmp_path):
        directory = record("one", status="")
        directory.rename(tmp_path / "two")
        record("two")
        assert "ramify resume two" in ramify("show", "two").stdout

    def test_where_there_is_no_run_the_remedy_is_told(self, ramify):
        said = ramify("show")
        assert (said.returncode, said.stdout) == (2, "")
        assert "there are no runs in" in said.stderr
        assert "`ramify runs` lists the runs" in ramify("show", "nothing").stderr

    def test_training_data_is_made_of_the_last_run(self, ramify, record):
        record("run")
        said = ramify("export", "--report", "--format", "sft")
        assert (said.returncode, said.stdout.count("sft")) == (0, 1), said.stderr

    def test_an_export_without_rows_writes_nothing_and_says_why(self, ramify, record, tmp_path):
        record("run")
        for _ in range(2):
            said = ramify("export", "run", "--format", "retro", "--out", "rows")
            assert (said.returncode, said.stdout) == (2, "")
            assert "nothing was written to rows: no row can be used: " in said.stderr
            assert not (tmp_path / "rows").exists()
        said = ramify("export", "run", "--format", "edit", "--out", "rows")
        assert "nothing was written to rows: no run has such rows (right edits of functions, which" in said.stderr


class TestApplyingAnEarlierAnswer:
    def test_the_patch_of_the_last_run_is_applied_to_the_checkout_it_came_from(self, ramify, record, checkout):
        record("run")
        said = ramify("apply", "last")
        assert (said.returncode, said.stderr) == (0, f"applied to {checkout}\n")
        assert (checkout / "a.py").read_text() == "x = 2\n"

    def test_a_patch_that_is_applied_already_is_not_applied_again(self, ramify, record, checkout):
        record("run")
        ramify("apply", "last")
        said = ramify("apply", "last")
        assert (said.returncode, said.stderr) == (
            2,
            f"ramify: nothing was applied to {checkout}: the patch is already applied there\n",
        )
        (checkout / "a.py").write_text("x = 3\n")
        assert "a.py changed since the run began" in ramify("apply", "last").stderr

    def test_a_patch_that_is_not_finished_is_shown_and_not_applied(self, ramify, record, checkout):
        directory = record("run", status="improved")
        said = ramify("apply", "run")
        assert (said.returncode, f"ramify show {directory} --patch" in said.stderr) == (1, True)
        assert (checkout / "a.py").read_text() == "x = 1\n"

    def test_a_run_that_has_not_ended_has_no_patch_to_apply(self, ramify, record):
        directory = record("run", status="")
        assert f"ramify resume {directory}" in ramify("apply", "last").stderr


@pytest.fixture
def committed(checkout):
    """The checkout, with a failing test and a commit."""
    (checkout / "test_a.py").write_text("from a import x\n\n\ndef test_x():\n    assert x == 2\n")
    subprocess.run(["git", "-C", checkout, "add", "-A"], check=True)
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", "-C", checkout, *identity, "commit", "-q", "-m", "base"], check=True)
    return checkout


@pytest.mark.slow
def test_a_run_in_a_directory_of_its_own_is_listed_as_well(ramify, committed, tmp_path):
    ramify("solve", "--issue", "Add up.", "--repo", committed, "--out", "own", "--max-nodes", 1, *PLAIN)
    (line,) = json.loads(ramify("runs", "--json").stdout)
    assert (line["run"], line["issue"]) == (str(tmp_path / "own"), "Add up.")


def test_a_refused_run_leaves_nothing_behind(ramify, committed, tmp_path):
    said = ramify("fix", "test_a.py::test_typo", "--repo", committed, "--out", "own", *PLAIN)
    assert (said.returncode, "there is no test 'test_a.py::test_typo'" in said.stderr) == (2, True), said.stderr
    assert json.loads(ramify("runs", "--json").stdout) == []
    assert not (tmp_path / "own").exists()
