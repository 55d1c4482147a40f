"""What a person at a terminal sees: exit codes, one-line errors, the patch on stdout and all else on stderr."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent import Task, load, solve, steer
from agent.budget import Usage
from agent.cli import checkout
from agent.errors import RamifyError, UsageError
from agent.run.commands import Order
from agent.run.events import Added, Ended, Spent, Started, Steered
from agent.run.journal import read_events
from agent.run.paths import STORE, note_run
from agent.run.run import Run
from sandboxes import Snapshot, Workspace
from sandboxes.namespace import provider as namespace
from tests import commands
from tests.scripted_server import ScriptedServer, says
from tests.trees import node

ROOT = Path(__file__).parent.parent
RAMIFY = (sys.executable, "-m", "agent")
PLAIN = ("-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}', "-c", "measure.baseline_runs=1")
"""The tools of development are slow plugins."""


def git(repo, *argv):
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", repo, *identity, *argv], capture_output=True, check=True).stdout


def repository(path, files):
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    git(path, "init", "-q")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "base")
    return path


@pytest.fixture
def repo(tmp_path):
    """A function that is wrong in one place, and the test that says so."""
    return repository(
        tmp_path / "repo",
        {
            "calc.py": "def larger(a, b):\n    if a < b:\n        return a\n    return b\n",
            "test_calc.py": "from calc import larger\n\n\ndef test_larger():\n    assert larger(1, 2) == 2\n\n\n"
            "def test_equal():\n    assert larger(3, 3) == 3\n",
        },
    )


@pytest.fixture
def environment(tmp_path):
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }


@pytest.fixture
def ramify(tmp_path, environment):
    def run(*argv, stdin="", **env):
        plain = PLAIN if argv[:1] == ("solve",) else ()
        return commands.ramify([*argv, *plain], cwd=tmp_path, env=environment | env, stdin=stdin)

    return run


def refused(said, code, *fragments):
    """One line on stderr, nothing on stdout, no traceback."""
    assert (said.returncode, said.stdout) == (code, ""), said.stderr
    (line,) = said.stderr.splitlines()
    assert line.startswith("ramify: ")
    for fragment in fragments:
        assert fragment in line


class TestRefusals:
    def test_no_issue_is_a_usage_error(self, ramify, repo):
        refused(ramify("solve", "--repo", repo), 2, "no issue", "--issue TEXT")

    @pytest.mark.parametrize("text", ["", " \n"])
    def test_an_empty_issue_is_a_usage_error_from_wherever_it_comes(self, ramify, repo, tmp_path, text):
        (tmp_path / "issue.md").write_text(text)
        refused(ramify("solve", "issue.md", "--repo", repo), 2, "the issue is empty (issue.md)", "--goal-test")
        refused(ramify("solve", "-", "--repo", repo, stdin=text), 2, "the issue is empty (-)")
        refused(ramify("solve", "--issue", text, "--repo", repo), 2, "the issue is empty (--issue)")

    def test_an_issue_that_is_not_there_or_too_large_or_given_twice(self, ramify, repo, tmp_path):
        (tmp_path / "huge.md").write_bytes(b"x" * ((1 << 20) + 1))
        refused(ramify("solve", "nope.md", "--repo", repo), 2, "nope.md", "No such file")
        refused(ramify("solve", "huge.md", "--repo", repo), 2, "huge.md", "larger than")
        refused(ramify("solve", "huge.md", "--issue", "x", "--repo", repo), 2, "once")

    def test_a_place_that_is_no_checkout_comes_with_a_remedy(self, ramify, repo, tmp_path):
        (tmp_path / "plain").mkdir()
        (repo / "below").mkdir()
        git(tmp_path, "clone", "-q", "--bare", repo, tmp_path / "bare.git")
        for place, *fragments in (
            ("missing", "there is no such directory"),
            ("plain", "not a git repository", "git -C plain init"),
            ("bare.git", "bare repository", "git clone"),
            (repo / "below", "lies inside the repository", f"--repo {repo}"),
        ):
            refused(ramify("solve", "--issue", "x", "--repo", place), 2, *fragments)

    def test_a_setting_that_does_not_exist_is_a_configuration_error(self, ramify, repo):
        said = ramify("solve", "--issue", "x", "--repo", repo, "-c", "budget.max_node=3")
        refused(said, 3, "budget.max_node", "did you mean `budget.max_nodes`?")

    def test_a_judge_without_a_model_is_a_configuration_error(self, ramify, repo):
        said = ramify("solve", "--issue", "x", "--repo", repo, "--value", "judge")
        assert said.returncode == 3
        assert "-c value.model=PROVIDER/NAME" in said.stderr

    def test_a_model_without_its_key_is_told_before_there_is_a_run(self, ramify, repo, tmp_path):
        command = ("solve", "--issue", "x", "--repo", repo)
        refused(ramify(*command, "--policy", "openai/tiny"), 3, "set OPENAI_API_KEY")
        refused(ramify(*command, "--value", "judge", "-c", "value.model=openai/tiny"), 3, "set OPENAI_API_KEY")
        assert not (tmp_path / "state").exists()

    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("claude-sonnet-4-5", "write anthropic/claude-sonnet-4-5"),
            ("gpt-5", "write openai/gpt-5"),
            ("mutat", "did you mean mutate?"),
            ("qwen3", "openai/qwen3 with -c model.base_url=URL"),
            ("opnai/tiny", "did you mean openai/tiny?"),
        ],
    )
    def test_a_model_without_its_provider_is_told_how_to_write_it(self, ramify, repo, name, remedy):
        refused(ramify("solve", "--issue", "x", "--repo", repo, "--model", name), 3, remedy)

    def test_a_price_that_is_none_is_refused_and_says_what_one_looks_like(self, ramify, repo):
        refused(ramify("solve", "--issue", "x", "--repo", repo, "--model-price", "three"), 2, "three", "such as 3,15")
        said = ramify("solve", "--issue", "x", "--repo", repo, "--model-price", "3,-1")
        refused(said, 2, "--model-price -1 should be greater than or equal to 0 (setting `model.price.1`)")

    @pytest.mark.parametrize(
        ("option", "value", "remedy"),
        [
            ("--workers", "0", "should be greater than or equal to 1"),
            ("--max-seconds", "-3", "should be greater than 0"),
            ("--sandbox", "dockr", "should be 'auto', 'docker', 'commit' or 'namespace'"),
            ("--effort", "huge", "should be 'low', 'medium', 'high' or 'max'"),
            ("--search", "mct", "did you mean mcts? choose one of adaptive, astar"),
            ("--value", "test", "did you mean tests?"),
            ("--recipe", "swe_search", "did you mean swe-search?"),
        ],
    )
    def test_a_bad_value_of_an_option_is_a_usage_error_and_that_of_a_setting_is_not(
        self, ramify, repo, option, value, remedy
    ):
        command = ("solve", "--issue", "x", "--repo", repo)
        refused(ramify(*command, option, value), 2, f"{option} {value}", remedy)
        setting = {"--max-seconds": "budget.max_seconds", "--sandbox": "sandbox.kind"}.get(option, option[2:])
        assert ramify(*command, "-c", f"{setting}={value}").returncode == 3

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            (("solve", "--issue", "x", "--max-states", "-1"), "--max-states -1 should be"),
            (("solve", "--issue", "x", "--max-nodes=-1"), "--max-nodes -1 should be"),
            (("solve", "--issue", "x", "-l", "-2"), "-l -2 should be"),
            (("fix", "-w0"), "--workers 0 should be"),
            (("bench", "grade", "preds.json", "--source", "s", "--sandbox", "dockr"), "--sandbox dockr should be"),
        ],
    )
    def test_a_refused_option_has_the_name_that_was_typed(self, ramify, tmp_path, typed, said):
        (tmp_path / "preds.json").write_text("{}")
        refused(ramify(*typed), 2, said)

    def test_a_limit_that_is_none_does_not_resume_a_run(self, ramify, recorded):
        done = ramify("resume", recorded, "--max-seconds", "-3", "--quiet")
        refused(done, 2, "--max-seconds -3 should be greater than 0 (setting `budget.max_seconds`)")

    def test_a_replay_by_a_search_that_does_not_exist_is_refused(self, ramify, recorded):
        refused(ramify("replay", recorded, "--search", "mct"), 2, "--search mct: did you mean mcts?")

    @pytest.mark.parametrize(
        ("option", "command", "said"),
        [
            ("--test", "nosuchrunner", "the test command 'nosuchrunner' cannot be run"),
            ("--setup", "echo no mirror; exit 7", "the set-up command `echo no mirror; exit 7` ended with exit code 7"),
        ],
    )
    def test_a_command_that_cannot_be_run_is_a_usage_error(self, ramify, repo, option, command, said):
        done = ramify("solve", "--issue", "x", "--repo", repo, option, command)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr

    def test_a_run_that_is_refused_after_it_began_ends_with_the_reason(self, ramify, repo, tmp_path):
        task = Task("t", "x", Workspace(path=repo), "python3 -m pytest -q", ("nothing.py::test_x",))
        with pytest.raises(UsageError, match=r"there is no file nothing\.py"):
            solve(task, load(), tmp_path / "run")
        *_, ended = read_events(tmp_path / "run" / "journal.jsonl")
        assert (ended.status, ended.stop) == ("no_patch", "FAILED")
        assert ended.reason == "there is no file nothing.py"
        assert f"no_patch: stopped by an error ({ended.reason})" in ramify("show", "run").stdout
        assert ramify("resume", "run").returncode == 2

    def test_a_run_that_cannot_be_resumed_keeps_its_end(self, ramify, repo, tmp_path):
        ramify("solve", "--issue", "x", "--repo", repo, "--max-states", "2", "--out", "run")
        shutil.rmtree(tmp_path / "run" / STORE)
        with Run.read(tmp_path / "run") as run:
            ended = run.ended
        again = ramify("resume", "run", "--max-states", "9")
        assert again.returncode == 2, again.stderr
        with Run.read(tmp_path / "run") as run:
            assert (run.ended, ended.stop) == (ended, "NODES")

    def test_a_directory_that_is_not_a_run(self, ramify, tmp_path):
        for command in (["show"], ["resume"], ["resume", "--apply"]):
            refused(ramify(*command, "nothing"), 2, "there is no run nothing; `ramify runs` lists the runs")
        assert not (tmp_path / "nothing").exists()

    def test_a_directory_that_holds_a_run_or_anything_else_is_not_begun_again(self, ramify, repo, tmp_path, recorded):
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "thesis.txt").touch()
        refused(ramify("solve", "--issue", "x", "--repo", repo, "--out", recorded), 2, f"ramify resume {recorded}")
        refused(ramify("solve", "--issue", "x", "--repo", repo, "--out", "full"), 2, "not empty")

    def test_a_run_that_recorded_nothing_may_be_begun_again(self, ramify, repo, tmp_path):
        Run.open(tmp_path / "begun").close()
        refused(ramify("resume", "begun"), 2, "start it again with solve")
        again = ("solve", "--issue", "x", "--repo", repo, "--out", "begun", "--value", "judge")
        refused(ramify(*again), 3, "-c value.model=PROVIDER/NAME")

    def test_a_place_for_the_patch_that_does_not_exist_is_refused_before_anything_is_spent(self, ramify, repo):
        refused(ramify("solve", "--issue", "x", "--repo", repo, "--patch-out", "no/fix.patch"), 2, "no/fix.patch")

    def test_the_traceback_is_shown_when_asked_for(self, ramify, tmp_path):
        assert "Traceback" in ramify("show", "nothing", RAMIFY_DEBUG="1").stderr


@pytest.fixture
def recorded(tmp_path):
    """A run of four states that was improved and not solved."""
    with Run.open(tmp_path / "recorded") as run:
        run.record(Started({"workspace": {"path": None}}, {}, Snapshot("s0", "d0")))
        for each in (node(0, value=0.25), node(1, 0, 0.5), node(2, 0, 0.125), node(3, 1, 0.75)):
            run.record(Added(each, elapsed_s=2.0))
        run.record(Spent(Usage(model_calls=2, tokens_in=10, cost_usd=0.5, unpriced_calls=1, measurements=4)))
        blob = run.journal.put_blob(b"--- a/x\r\n\xff\n")
        run.record(Ended("improved", "NODES", 3, True, blob, 2.0, {"passed": 1}))
    return tmp_path / "recorded"


class TestShow:
    def test_it_draws_every_state_and_marks_the_way_to_the_best(self, ramify, recorded):
        lines = ramify("show", recorded).stdout.splitlines()
        marked = [line.split("*")[1].split()[0] for line in lines if "*" in line]
        assert marked == ["0", "1", "3"]
        assert sum("0.125" in line for line in lines) == 1

    def test_it_marks_the_way_to_the_answer_which_another_state_may_equal_in_value(self, ramify, tmp_path):
        with Run.open(tmp_path / "equals") as run:
            for each in (node(0, value=0.1), node(1, 0, 0.1), node(2, 1, 0.1)):
                run.record(Added(each))
            run.record(Ended("submitted", "SUBMITTED", 2, True, None, 2.0, {}))
        lines = ramify("show", "equals").stdout.splitlines()
        assert [line.split("*")[1].split()[0] for line in lines if "*" in line] == ["0", "1", "2"]

    def test_a_child_stands_below_its_parent(self, ramify, recorded):
        lines = ramify("show", recorded).stdout.splitlines()
        (parent,) = (number for number, line in enumerate(lines) if "* 1 " in line)
        assert "* 3 " in lines[parent + 1]

    def test_it_says_what_was_spent_and_why_it_ended(self, ramify, recorded):
        said = ramify("show", recorded).stdout
        assert "4 states, 4 test runs" in said
        assert "the price of 1 call is unknown" in said
        assert "improved: the limit of states is reached" in said

    @pytest.mark.parametrize("name", ["f" * 64, "../../secret", "\x1b[2J" * 100])
    def test_a_run_whose_journal_names_no_file_of_its_own_is_damaged(self, ramify, recorded, tmp_path, name):
        (tmp_path / "secret").write_text("secret")
        journal = recorded / "journal.jsonl"
        (patch,) = (event.patch_blob for event in read_events(journal) if isinstance(event, Ended))
        journal.write_text(journal.read_text().replace(patch, json.dumps(name)[1:-1]))
        refused(ramify("show", recorded, "--patch"), 6, "the run is damaged", "put it back")

    def test_no_colour_reaches_a_pipe(self, ramify, recorded):
        assert "\x1b" not in ramify("show", recorded).stdout

    def test_a_deep_tree_is_cut_off_nowhere(self, ramify, tmp_path):
        with Run.open(tmp_path / "deep") as run:
            for number in range(60):
                run.record(Added(node(number, number - 1 if number else None)))
        lines = ramify("show", "deep").stdout.splitlines()
        assert [line.split(" 0.000")[0].split()[-1] for line in lines[:60]] == [str(number) for number in range(60)]

    def test_the_patch_comes_out_byte_for_byte(self, recorded, environment):
        said = subprocess.run([*RAMIFY, "show", "--patch", recorded], env=environment, capture_output=True)
        assert said.stdout == b"--- a/x\r\n\xff\n"

    def test_a_patch_orders_a_terminal_nothing(self, recorded, environment):
        with Run.open(recorded) as run:
            blob = run.journal.put_blob("+\ta\x1b[2J\u202eb\r\n".encode())
            run.record(Ended("improved", "NODES", 3, True, blob, 2.0, {"passed": 1}))
        ours, theirs = pty.openpty()
        with open(ours, "rb", buffering=0) as terminal:
            subprocess.run([*RAMIFY, "show", "--patch", recorded], env=environment, stdout=theirs, check=True)
            os.close(theirs)
            said = terminal.read(1000)
        assert said.split() == [b"+", rb"a\x1b[2J\u202eb\r"]

    def test_it_reads_a_run_that_another_process_holds(self, ramify, recorded):
        with Run.open(recorded):
            assert "4 states" in ramify("show", recorded).stdout
            assert "state 3, by way of 0 > 1 > 3" in ramify("show", recorded, "--why", "3").stdout

    def test_no_line_of_a_reason_is_filled_up_with_blanks_in_a_pipe(self, ramify, recorded):
        with Run.open(recorded) as run:
            failing = node(4, 0)
            run.record(Added(replace(failing, evaluation=replace(failing.evaluation, notes="broken: a\nand b"))))
        lines = ramify("show", recorded, "--why", "4").stdout.splitlines()
        assert "  broken: a" in lines
        assert max(map(len, lines)) < 200

    def test_why_is_one_json_object_when_asked_for(self, ramify, recorded):
        told = json.loads(ramify("show", recorded, "--why", "3", "--json").stdout)
        assert (told["node"], told["path"]) == (3, [0, 1, 3])
        assert [each["number"] for each in told["selections"]] == [1, 3]

    def test_options_that_do_not_go_together_and_nodes_that_are_not_there_are_refused(self, ramify, recorded):
        refused(ramify("show", recorded, "--why", "4"), 2, "there is no state 4: this run has states 0 to 3")
        refused(ramify("show", recorded, "--json"), 2, "--json needs --why STATE")
        refused(ramify("show", recorded, "--why", "1", "--patch"), 2, "give only one of --patch")


class TestSteeringAStoppedRun:
    def test_orders_are_in_the_journal_at_once_and_show_tells_them(self, ramify, recorded):
        for order in (["fork", "2", "--hint", "look at [b]"], ["prune", "3"], ["pin", "1"]):
            told = ramify(order[0], recorded, *order[1:])
            assert told.stdout == f"recorded: the run is stopped; continue it with: ramify resume {recorded}\n"
        given = [event.order for event in read_events(recorded / "journal.jsonl") if isinstance(event, Steered)]
        assert given == [Order("fork", 2, "look at [b]"), Order("prune", 3), Order("pin", 1)]
        said = ramify("show", recorded).stdout
        assert "pinned: state 1" in said
        assert "asked for: fork 2 look at [b]" in said
        assert [line.split("*")[1].split()[0] for line in said.splitlines() if "[pruned]" in line] == ["3"]
        ramify("pin", recorded, "1", "--off")
        assert "pinned" not in ramify("show", recorded).stdout

    def test_what_cannot_be_obeyed_is_refused_with_a_remedy(self, ramify, recorded):
        refused(ramify("fork", recorded, "7"), 2, "there is no state 7: this run has states 0 to 3")
        refused(ramify("prune", "nothing", "1"), 2, "there is no run nothing; `ramify runs` lists the runs")
        ramify("prune", recorded, "1")
        for command in ("fork", "pin"):
            refused(ramify(command, recorded, "3"), 2, "it was pruned", f"{command} state 0 above it")


class TestApplying:
    def patch(self, repo, text):
        (repo / "calc.py").write_text(text)
        made = git(repo, "diff", "--binary")
        git(repo, "checkout", "-q", "calc.py")
        return made

    def test_a_patch_is_applied_byte_for_byte(self, repo):
        made = self.patch(repo, "windows\r\nspaces   \n\n\n")
        checkout.apply(repo, made, Path("run"))
        assert (repo / "calc.py").read_bytes() == b"windows\r\nspaces   \n\n\n"

    def test_a_patch_that_does_not_apply_as_a_whole_changes_nothing(self, repo):
        (repo / "other.py").write_text("new\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", "other")
        (repo / "other.py").write_text("newer\n")
        made = self.patch(repo, "different\n")
        git(repo, "checkout", "-q", "other.py")
        (repo / "other.py").write_text("changed meanwhile\n")
        before = (repo / "calc.py").read_bytes()
        with pytest.raises(RamifyError, match=r"nothing was applied"):
            checkout.apply(repo, made, Path("run"))
        assert (repo / "calc.py").read_bytes() == before

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("https://me:hunter2@example.org/a/b.git", "https://example.org/a/b.git"),
            ("https://me:hunt@r2@example.org/a/b.git", "https://example.org/a/b.git"),
            ("git@example.org:a/b.git", "git@example.org:a/b.git"),
            ("/home/me/b", ""),
            ("file:///home/me/b", ""),
        ],
    )
    def test_knows_where_it_was_cloned_from_without_a_password(self, repo, url, said):
        assert checkout.inspect(repo).origin == ""
        git(repo, "remote", "add", "origin", url)
        assert checkout.inspect(repo).origin == said

    def test_in_a_folder_of_it_the_checkout_is_meant(self, repo, monkeypatch):
        (repo / "below").mkdir()
        monkeypatch.chdir(repo / "below")
        assert checkout.inspect(None).path == repo

    def test_uncommitted_changes_are_seen(self, repo):
        assert not checkout.inspect(repo).dirty
        (repo / "new.py").touch()
        assert checkout.inspect(repo).dirty


@pytest.fixture
def hopeless(tmp_path):
    """A function that no small edit repairs, with tests that take their time."""
    body = "".join(f"    total = total + {n} * a - b if a > {n} else total - {n}\n" for n in range(2, 8))
    return repository(
        tmp_path / "hopeless",
        {
            "slow.py": f"def compute(a, b):\n    total = 0\n{body}    return total\n",
            "test_slow.py": "import time\n\nfrom slow import compute\n\n\ndef test_compute():\n    time.sleep(0.3)\n"
            "    assert compute(7, 1) == 'sixty-one'\n",
        },
    )


@pytest.mark.namespace
class TestSolving:
    @pytest.fixture(autouse=True)
    def sandbox(self):
        if why := namespace.probe():
            pytest.skip(why)

    def test_the_patch_goes_to_stdout_and_repairs_the_repository(self, ramify, repo, tmp_path):
        before = (repo / "calc.py").read_text()
        said = ramify("solve", "--issue", "larger(1, 2) is 1", "--repo", repo, "--sandbox", "namespace")
        assert said.returncode == 0, said.stderr
        assert (repo / "calc.py").read_text() == before
        assert git(repo, "status", "--porcelain") == b""
        checkout.apply(repo, said.stdout.encode(), Path("run"))
        plain = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        tested = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=repo, env=plain, capture_output=True)
        assert tested.returncode == 0, tested.stdout

    @pytest.mark.slow
    def test_quietly_only_the_patch_is_printed_and_verbosely_the_log_as_well(self, ramify, repo):
        solve = ("solve", "--issue", "larger(1, 2) is 1", "--repo", repo, "-m", "mutate")
        quiet, verbose = ramify(*solve, "-q"), ramify(*solve, "-v")
        assert (quiet.returncode, quiet.stderr) == (0, "")
        assert quiet.stdout == verbose.stdout
        assert "INFO agent." in verbose.stderr
        assert "solved: " in verbose.stderr

    @pytest.mark.slow
    def test_rows_of_training_data_say_where_the_repository_was_cloned_from(self, ramify, repo, tmp_path):
        git(repo, "remote", "add", "origin", "https://me:hunter2@example.org/a/b.git")
        assert ramify("solve", "--issue", "larger(1, 2) is 1", "--repo", repo, "--out", "run").returncode == 0
        assert ramify("export", "run", "--format", "sft", "--out", "data").returncode == 0
        (row,) = map(json.loads, (tmp_path / "data" / "train.jsonl").read_text().splitlines())
        assert row["provenance"]["source"] == "https://example.org/a/b.git"

    @pytest.mark.slow
    def test_json_is_one_object_and_its_paths_lead_to_the_patch_and_the_run(self, ramify, repo, tmp_path):
        said = ramify(
            "solve", "-", "--repo", repo, "--json", "--patch-out", "fix.patch", "--out", "run", stdin="larger is wrong"
        )
        told = json.loads(said.stdout)
        assert {
            key: told[key]
            for key in ("status", "verified", "stop", "cost_usd", "tokens", "tokens_cached", "baseline", "final")
        } == {
            "status": "solved",
            "verified": True,
            "stop": "solved",
            "cost_usd": 0.0,
            "tokens": 0,
            "tokens_cached": 0,
            "baseline": {"passed": 1, "failed": 1},
            "final": {"passed": 2, "failed": 0},
        }
        assert (tmp_path / told["patch_path"]).read_bytes() == (tmp_path / "run" / "patch.diff").read_bytes()
        assert ramify("show", told["run_dir"], "--patch").stdout == (tmp_path / "fix.patch").read_text()

    @pytest.mark.slow
    def test_apply_changes_the_checkout_uncommitted_changes_and_all(self, ramify, repo):
        (repo / "notes.txt").write_text("mine\n")
        said = ramify("solve", "--issue", "larger is wrong", "--repo", repo, "--apply", "--json")
        assert said.returncode == 0, said.stderr
        assert sum("uncommitted changes" in line for line in said.stderr.splitlines()) == 1
        changed = git(repo, "status", "--porcelain").decode().splitlines()
        assert changed == [" M calc.py", "?? notes.txt"]

    @pytest.mark.slow
    def test_without_a_solution_nothing_is_applied_and_the_code_says_why(self, ramify, hopeless):
        begin = ("solve", "--issue", "compute is wrong", "--repo", hopeless, "--apply", "--json")
        by_nodes = ramify(*begin, "--max-nodes", "3")
        assert (by_nodes.returncode, json.loads(by_nodes.stdout)["stop"]) == (1, "nodes"), by_nodes.stderr
        by_time = ramify(*begin, "--max-seconds", "4")
        assert (by_time.returncode, json.loads(by_time.stdout)["stop"]) == (124, "time"), by_time.stderr
        assert git(hopeless, "status", "--porcelain") == b""

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_the_search_with_an_answer_and_the_run_goes_on_later(
        self, ramify, environment, hopeless, tmp_path, number
    ):
        command = [
            *RAMIFY,
            "solve",
            "--issue",
            "compute is wrong",
            "--repo",
            hopeless,
            "--out",
            "run",
            "--json",
            *PLAIN,
        ]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
            try:
                wait_for_nodes(tmp_path / "run" / "journal.jsonl", 2)
                process.send_signal(number)
                told, said = process.communicate(timeout=500)
            finally:
                process.kill()
        assert process.returncode == 128 + number, said
        first = json.loads(told)
        assert (first["status"], first["stop"]) == ("no_patch", "interrupted")
        again = ramify("resume", "run", "--json", "--max-nodes", first["nodes"] + 2)
        assert json.loads(again.stdout)["nodes"] == first["nodes"] + 2, again.stderr

    @pytest.mark.slow
    def test_a_resumed_run_says_that_the_python_beneath_its_states_has_changed(self, ramify, repo, tmp_path):
        active = shutil.copytree(os.environ["VIRTUAL_ENV"], tmp_path / "env")
        begun = ramify(
            "solve", "--issue", "x", "--repo", repo, "--out", "run", "--max-nodes", "1", VIRTUAL_ENV=str(active)
        )
        (active / "bin/new-tool").write_text("")
        again = ramify("resume", "run", "--max-nodes", "1", VIRTUAL_ENV=str(active))
        assert (f"{active} changed" in begun.stderr, f"{active} changed" in again.stderr) == (False, True), again.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize("killed", [False, True], ids=["goes on", "is killed"])
    def test_a_running_search_is_steered_and_obeys_then_or_when_it_is_resumed(
        self, ramify, environment, repo, tmp_path, killed
    ):
        """The model gives the orders itself, while the search waits for its third answer."""
        run, told = tmp_path / "run", []

        def model(body):
            if len(server.requests) == 3:
                told.append(ramify("show", run).stdout)
                told.append(steer(run, Order("prune", 2)))
                told.append(ramify("fork", run, 1, "--hint", "Mind the [sign]").stdout)
                told.append(steer(run, Order("pin", 1)))
                if killed:
                    process.kill()
            file = f"notes{len(server.requests)}.txt"
            return says(None, ("write", {"path": file, "content": file}), ("run_tests", {}))

        with ScriptedServer(model) as server:
            limits = ("--max-nodes", "6", "--json")
            settings = ("--policy", "openai/tiny", "-c", f'model.base_url="{server.url}"', "--sandbox", "namespace")
            command = [*RAMIFY, "solve", "--issue", "x", "--repo", repo, "--out", run, *settings, *limits, *PLAIN]
            key, pipe = {"OPENAI_API_KEY": "sk-tests"}, subprocess.PIPE
            with subprocess.Popen(command, cwd=tmp_path, env=environment | key, stdout=pipe, stderr=pipe) as process:
                said = process.communicate(timeout=500)[1].decode()
            if killed:
                said = ramify("resume", run, *limits, **key).stderr
            assert "not ended" in told[0], said
            assert [line.split(":")[0] for line in told[1:]] == ["queued"] * 3
            assert "a person asks: fork 1 Mind the [sign]" in said
            with Run.read(run) as opened:
                tree, events = opened.tree, opened.journal.events()
            chosen = {event.node.id: event.choice for event in events if isinstance(event, Added) and event.choice}
            (obeyed,) = [made for made, choice in chosen.items() if choice.order is not None]
            assert (chosen[obeyed].node, chosen[obeyed].hint) == (1, "Mind the [sign]")
            assert ["Mind the [sign]" in str(request["messages"][-1]) for request in server.requests].count(True) == 1
            later = [each for each in chosen if each > obeyed]
            assert later
            assert all(1 in [above.id for above in tree.path(each)] for each in later)
            assert not tree.expandable(2)
            assert "asked for by a person (order 1): Mind the [sign]" in ramify("show", run, "--why", obeyed).stdout
            if not killed:
                assert "recorded" in ramify("fork", run, 0).stdout
                again = ramify("resume", run, "--max-nodes", "7", **key)
                assert again.returncode == 1, again.stderr
                with Run.read(run) as opened:
                    assert opened.tree[6].parents == (0,)


def wait_for_nodes(journal, count, timeout_s=100):
    deadline = time.monotonic() + timeout_s
    while not journal.exists() or sum(isinstance(event, Added) for event in read_events(journal)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}


def test_a_shell_completes_commands_and_options(ramify):
    def completed(line):
        asked = {"_RAMIFY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        return ramify(**asked).stdout.split()

    assert completed("ramify sol") == ["solve"]
    assert set(completed("ramify fix --max")) == {"--max-seconds", "--max-usd"}


class TestHousekeeping:
    def test_the_doctor_names_keys_and_never_shows_them(self, ramify):
        said = ramify("doctor", ACME_API_KEY="s3cret", **NO_ENGINE)
        assert "ACME_API_KEY" in said.stdout
        assert "s3cret" not in said.stdout + said.stderr

    def test_the_doctor_is_content_when_one_sandbox_works(self, ramify):
        said = ramify("doctor", **NO_ENGINE)
        works = [line.split()[1] for line in said.stdout.splitlines() if line.startswith("ok")]
        assert said.returncode == (0 if "namespace" in works else 6)
        assert "docker" not in works

    def test_clean_takes_the_states_of_ended_runs_and_leaves_their_journals(self, ramify, recorded, tmp_path):
        runs = tmp_path / "state" / "ramify" / "runs"
        ended, stopped = runs / "ended", runs / "stopped"
        shutil.copytree(recorded, ended)
        with Run.open(stopped) as run:
            run.record(Started({}, {}, Snapshot("s0", "d0")))
        for each in (ended, stopped):
            (each / "store" / "layers").mkdir(parents=True)
            (each / "store" / "layers" / "big").write_bytes(bytes(3 << 20))

        def said(*options):
            return [line for line in ramify("clean", *options, **NO_ENGINE).stdout.splitlines() if "states" in line]

        assert said() == ["the states of 1 run that has ended are kept, 3 MiB: --states removes them"]
        assert said("--states", "--dry-run") == [f"would remove states of run {ended}, 3 MiB (it can be resumed)"]
        assert (ended / "store").exists()
        assert said("--states", "--yes") == [f"removed states of run {ended}, 3 MiB"]
        assert not (ended / "store").exists()
        assert (ended / "journal.jsonl").exists()
        assert (stopped / "store").exists()

    def test_clean_asks_before_it_takes_the_states_of_a_run_that_can_be_resumed(self, ramify, recorded, tmp_path):
        runs = tmp_path / "state" / "ramify" / "runs"
        limited, solved = runs / "limited", runs / "solved"
        for each in (limited, solved):
            shutil.copytree(recorded, each)
            (each / "store").mkdir()
        with Run.open(solved) as run:
            run.record(Ended("solved", "SOLVED", 3, True, None, 2.0, {}))
        said = ramify("clean", "--states", **NO_ENGINE)
        refused(said, 2, "1 run that can be resumed", str(limited), "--yes")
        assert (limited / "store").exists()
        shutil.rmtree(limited)
        assert f"removed states of run {solved}, " in ramify("clean", "--states", **NO_ENGINE).stdout

    def test_clean_takes_the_states_of_a_run_that_was_made_elsewhere_which_is_not_resumed_then(
        self, ramify, recorded, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        shutil.copytree(recorded, tmp_path / "elsewhere")
        (tmp_path / "elsewhere" / "store").mkdir()
        note_run(tmp_path / "elsewhere")
        assert (
            f"removed states of run {tmp_path / 'elsewhere'}, "
            in ramify("clean", "--states", "--yes", **NO_ENGINE).stdout
        )
        refused(
            ramify("resume", "elsewhere", "--quiet"),
            2,
            "its states were removed",
            "`ramify clean --states`",
            "start a new run",
        )
        assert not (tmp_path / "elsewhere" / "store").exists()

    @pytest.mark.parametrize(("answer", "kept"), [("n", True), ("y", False)])
    def test_clean_takes_them_where_a_person_says_so(self, environment, recorded, tmp_path, answer, kept):
        run = tmp_path / "state" / "ramify" / "runs" / "limited"
        shutil.copytree(recorded, run)
        (run / "store").mkdir()
        ours, theirs = os.openpty()
        os.write(ours, f"{answer}\n".encode())
        command = [*RAMIFY, "clean", "--states"]
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, env=environment | NO_ENGINE)
        assert f"{run} can be resumed" in done.stderr
        assert (run / "store").exists() == kept
        os.close(ours)
        os.close(theirs)

    def test_clean_asks_the_engine_once_for_what_it_has(self, ramify):
        asked = []

        class Engine(BaseHTTPRequestHandler):
            """An engine that has nothing."""

            def do_GET(self):
                asked.append(name := urlsplit(self.path).path.removeprefix("/v1.44").split("/")[1])
                has = {"version": {"ApiVersion": "1.44"}, "system": {"Volumes": [], "Images": []}, "volumes": {}}
                answer = json.dumps(has.get(name, [])).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        with ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            ramify("clean", "--states", DOCKER_HOST=f"tcp://127.0.0.1:{server.server_port}")
            server.shutdown()
        assert asked.count("containers") == asked.count("system") == asked.count("volumes") == 1

    @pytest.mark.slow
    def test_clean_leaves_a_run_that_is_in_use(self, ramify, recorded, tmp_path):
        busy = tmp_path / "state" / "ramify" / "runs" / "busy"
        shutil.copytree(recorded, busy)
        (busy / "store").mkdir()
        with Run.open(busy):
            assert "states" not in ramify("clean", "--states", **NO_ENGINE).stdout
            assert (busy / "store").exists()
