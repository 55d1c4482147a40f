"""In a pipeline: a red build becomes a task, an issue is read by its number, results go where the next step looks."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from agent.budget import Stop, Usage
from agent.cli.ci.github import fetch_issue, summary, write_outputs
from agent.cli.ci.junit import read_failures, statement
from agent.cli.interactive import OutputOptions, run_interactively
from agent.cli.new_run import SolveRequest, _identity
from agent.errors import ModelError, UsageError
from agent.solver.result import Result
from tests import commands
from tests.projects import FIX, GOAL, SOURCE, TESTS, commit, git

PLAIN = 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}'
"""The tools of development are slow plugins."""
ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


@pytest.fixture
def red(tmp_path):
    """A repository with a failing test."""
    return commit(tmp_path / "red", {"means.py": SOURCE, "test_means.py": TESTS})


def environment(tmp_path, **more):
    keep = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    path = f"{BIN}:{os.environ['PATH']}"
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    return {**keep, **state, "PATH": path, "PYTHONPATH": str(ROOT), **more}


def ramify(repo, tmp_path, *argv, **more):
    return commands.ramify(argv, cwd=repo, env=environment(tmp_path, **more))


def report_of(repo, file, *argv):
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={file}", *argv]
    subprocess.run(command, cwd=repo, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True)
    return file


def outputs_of(file):
    """As GitHub reads them: `name<<delimiter`, the value, the delimiter."""
    found = re.findall(r"^(\w+)<<(ramify-\w{32})\n(.*?)\n?\2\n", file.read_text(), re.M | re.S)
    return {name: value for name, _, value in found}


# -- a red build ---------------------------------------------------------------------------------------------------

PASSES = "test_mean_of_some"
NESTED = """import pytest


class TestOuter:
    class TestInner:
        @pytest.mark.parametrize("x", [1, "a.b::c"])
        def test_one(self, x):
            assert x is None, "no"


@pytest.fixture
def broken():
    raise RuntimeError("the fixture is broken")


def test_two(broken):
    pass


def test_passes():
    pass
"""


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_a_report_names_its_failed_tests_as_pytest_does(tmp_path, family):
    repo = commit(tmp_path / "repo", {"pkg/tests/test_deep.py": NESTED, "test_gone.py": "import nothing_like_it\n"})
    report = report_of(repo, tmp_path / "report.xml", "-o", f"junit_family={family}", "--continue-on-collection-errors")
    failures = read_failures(report, repo)
    assert {failure.test for failure in failures} == {
        "test_gone.py",
        "pkg/tests/test_deep.py::TestOuter::TestInner::test_one[1]",
        "pkg/tests/test_deep.py::TestOuter::TestInner::test_one[a.b::c]",
        "pkg/tests/test_deep.py::test_two",
    }
    assert "the fixture is broken" in statement(failures)
    assert "nothing_like_it" in statement(failures)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<testsuites/>", "no test failed"),
        ("<html/>", "begins with <html>"),
        ("{}", "is not XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><testsuites>&a;</testsuites>', "document type"),
    ],
)
def test_a_report_that_says_nothing_is_an_error_that_names_it(tmp_path, text, message):
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "r.xml").write_text(text, encoding=encoding)
        with pytest.raises(UsageError, match=message):
            read_failures(tmp_path / "r.xml", tmp_path)


def test_a_test_of_the_report_that_passes_here_is_no_goal_and_is_named(namespaces, red, tmp_path):
    cases = "".join(
        f'<testcase classname="test_means" name="{n}"><failure/></testcase>' for n in (PASSES, GOAL.partition("::")[2])
    )
    (tmp_path / "r.xml").write_text(f"<testsuite>{cases}</testsuite>")
    done = ramify(red, tmp_path, "solve", "--from-junit", tmp_path / "r.xml", "-c", PLAIN, "--max-states", "1")
    assert done.returncode == 1, done.stderr
    assert f"goal     1 test has to pass: {GOAL}\n" in done.stderr
    assert f"named as goals, but not failing before the search: test_means.py::{PASSES}\n" in done.stderr


@pytest.mark.slow
def test_fix_mends_one_red_test_and_applies_the_patch(namespaces, red, tmp_path):
    done = ramify(red, tmp_path, "fix", GOAL, "--apply", "-c", PLAIN, "--out", tmp_path / "run", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "patch.diff").is_file()
    assert (red / "means.py").read_text() == SOURCE.replace("    if len(numbers) < 0:\n", FIX)
    assert subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=red, capture_output=True).returncode == 0


# -- GitHub --------------------------------------------------------------------------------------------------------


@pytest.fixture
def github(monkeypatch):
    """A server in GitHub's place, and what it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            issue = {"title": "Wrong mean", "body": "It is wrong.\r\n"}
            status = {"7": 200, "8": 404}.get(self.path.rsplit("/", 1)[-1], 403)
            body = json.dumps(issue if status == 200 else {"message": "rate limit exceeded"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("GITHUB_API_URL", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret")
        yield asked
        server.shutdown()


def test_an_issue_is_read_by_its_number(github):
    assert fetch_issue("octo/my.repo#7") == "Wrong mean\n\nIt is wrong."
    assert github == [("/repos/octo/my.repo/issues/7", "Bearer ghs_secret")]


def test_an_issue_that_is_not_there_or_cannot_be_read_is_an_error_that_says_so(github):
    with pytest.raises(UsageError, match="no issue octo/repo#8"):
        fetch_issue("octo/repo#8")
    with pytest.raises(ModelError, match="403 rate limit exceeded"):
        fetch_issue("octo/repo#9")


def test_an_output_cannot_smuggle_in_another(tmp_path):
    file = tmp_path / "outputs"
    evil = "x\nresolved=true\nresolved<<EOF\ntrue\nEOF"
    write_outputs(file, {"status": evil, "cost_usd": None})
    assert outputs_of(file) == {"status": evil, "cost_usd": ""}


def test_a_patch_cannot_leave_its_fence_in_a_summary():
    patch = b"+```\n+</details><img src=x>\n+````\n"
    page = summary({"status": "no_patch"}, "no patch", patch)
    fence = re.search(r"^(`{5,})diff\n", page, re.M)
    assert fence is not None
    inside = page[fence.end() : page.index(f"\n{fence[1]}\n", fence.end())]
    assert inside == patch.decode().rstrip()
    assert page.startswith("### Ramify: no patch\n")


def test_a_pipeline_file_that_cannot_be_written_takes_no_result_away(tmp_path, capsys):
    found = Result("no_patch", b"", False, Stop.EXHAUSTED, Usage(), None, tmp_path, 1, 1.0, {}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_OUTPUT", str(tmp_path / "gone" / "outputs"))
        assert run_interactively(lambda **_: found, OutputOptions(as_json=True)) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["status"] == "no_patch"
    assert "GITHUB_OUTPUT" in said.err
    with pytest.raises(UsageError, match="--summary-md"):
        OutputOptions(summary_md=tmp_path)


# -- the action and the workflow -----------------------------------------------------------------------------------


def step(job, name):
    return next(each for each in job["steps"] if each.get("name") == name)


@pytest.fixture
def search(red, tmp_path):
    """Runs the search step of the action, with these inputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    report = report_of(red, tmp_path / "report.xml")
    temp = tmp_path / "temp"
    (temp / "ramify").mkdir(parents=True)

    def search(settings="", **given):
        inputs = {name: each["default"] for name, each in action["inputs"].items()}
        inputs |= {"from-junit": str(report), "settings": f"{settings}\n{PLAIN}"}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        step_ = step(action["runs"], "Search")
        variables = {
            name: str(ROOT) if "action_path" in text else inputs[re.search(r"inputs\.([\w-]+)", text)[1]]
            for name, text in step_["env"].items()
        }
        files = {"GITHUB_OUTPUT": str(tmp_path / "out"), "GITHUB_STEP_SUMMARY": str(tmp_path / "md")}
        env = environment(tmp_path, **variables, **files, RUNNER_TEMP=str(temp))
        return subprocess.run(["bash", "-eo", "pipefail", "-c", step_["run"]], cwd=red, env=env, capture_output=True)

    return search


@pytest.mark.slow
def test_the_steps_of_the_action_turn_a_red_build_into_a_patch_and_tell_the_pipeline(namespaces, search, tmp_path):
    done = search("budget.max_nodes=200", goal_tests=f"{GOAL}\n\n", max_seconds="300")
    assert done.returncode == 0, done.stderr
    told = outputs_of(tmp_path / "out")
    assert (told["status"], told["resolved"], told["exit_code"], told["cost_usd"]) == ("solved", "true", "0", "0.0")
    outputs = yaml.safe_load((ROOT / "action.yml").read_text())["outputs"].values()
    assert {text.split("outputs.")[1].rstrip(" }") for text in (each["value"] for each in outputs)} == set(told)
    assert Path(told["patch_path"]) == tmp_path / "temp" / "ramify.diff"
    page = (tmp_path / "md").read_text()
    assert page.startswith("### Ramify: solved\n")
    assert f"+{FIX}" in page


def test_the_action_needs_a_python_that_is_new_enough(tmp_path):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    run = step(action["runs"], "Look at the Python that Ramify runs on")["run"]
    (tmp_path / "python").write_text("#!/bin/sh\n[ $1 = --version ] && echo Python 3.10.12 && exit\nexit 1\n")
    (tmp_path / "python").chmod(0o755)

    def look(python):
        env = environment(tmp_path, SOURCE=str(ROOT), PYTHON=str(python), GITHUB_OUTPUT=str(tmp_path / "out"))
        return subprocess.run(["bash", "-eo", "pipefail", "-c", run], env=env, capture_output=True, text=True)

    old = look(tmp_path / "python")
    assert (old.returncode, "is Python 3.10.12: name another" in old.stdout) == (3, True)
    assert look(sys.executable).returncode == 0
    told = dict(line.split("=", 1) for line in (tmp_path / "out").read_text().splitlines())
    assert (Path(told["downloads"]).is_absolute(), told["key"].startswith("ramify-")) == (True, True)


def test_the_workflow_asks_for_inputs_that_the_action_has_and_answers_red_builds():
    workflow = yaml.safe_load((ROOT / "examples" / "github" / "ramify.yml").read_text())
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    search = next(each for each in workflow["jobs"]["solve"]["steps"] if each.get("id") == "ramify")
    assert set(search["with"]) - set(inputs) == set()
    assert "workflow_run" in search["with"]["from-junit"]
    assert "workflow_run.event == 'push'" in workflow["jobs"]["solve"]["if"]  # never what a stranger's fork holds
    assert set(workflow[True]) == {"workflow_run", "issues", "workflow_dispatch"}


@pytest.mark.slow
def test_a_search_that_runs_out_of_time_does_not_fail_the_step_of_the_action(namespaces, search, tmp_path):
    done = search(max_seconds="0.5")
    assert done.returncode == 0, done.stderr
    assert outputs_of(tmp_path / "out")["exit_code"] == "124"


def test_an_error_fails_the_step_of_the_action_and_is_told_to_the_pipeline(search, tmp_path):
    assert search("search.nam=mcts").returncode == 3
    assert outputs_of(tmp_path / "out") == {"exit_code": "3"}
    page = (tmp_path / "md").read_text()
    assert page.startswith("### Ramify: error\n")
    assert "search.nam" in page


def test_an_input_that_the_command_does_not_take_is_told_to_the_pipeline_as_well(search, tmp_path):
    assert search(max_seconds="soon").returncode == 2
    assert (tmp_path / "out").read_text() == "exit_code=2\n"
    assert "exit code 2" in (tmp_path / "md").read_text()


def test_the_reference_explains_every_reason_to_stop():
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
    assert [stop.name for stop in Stop if f"`{stop.name.lower()}`" not in page] == []


def test_the_steps_of_the_workflow_propose_a_patch_that_was_checked(red, tmp_path):
    workflow = yaml.safe_load((ROOT / "examples" / "github" / "ramify.yml").read_text())
    solve, propose = workflow["jobs"]["solve"], workflow["jobs"]["propose"]
    assert set(solve["permissions"].values()) == {"read"}
    tokens = {each for step in propose["steps"] for each in step.get("env", {}).values() if "token" in each.lower()}
    assert tokens == {"${{ github.token }}"}
    assert "secrets." not in json.dumps(propose)
    assert "github.run_attempt" in step(propose, "Propose it")["env"]["BRANCH"]  # the branch of a first run stays
    origin = tmp_path / "origin.git"
    git(red, "clone", "-q", "--bare", str(red), str(origin))
    git(red, "remote", "add", "origin", str(origin))
    temp, fake = tmp_path / "temp", tmp_path / "fake"
    (temp / "patch").mkdir(parents=True)
    (temp / "ramify" / "bin").mkdir(parents=True)
    (temp / "ramify" / "bin" / "ramify").symlink_to(BIN / "ramify")
    fake.mkdir()
    (fake / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$RUNNER_TEMP/gh"\n')
    (fake / "gh").chmod(0o755)
    (red / "means.py").write_text(SOURCE.replace("    if len(numbers) < 0:\n", FIX))
    (temp / "patch" / "ramify.diff").write_text(git(red, "diff"))
    git(red, "checkout", "-q", ".")
    variables = {"RUNNER_TEMP": str(temp), "BRANCH": "ramify/1", "ISSUE": "7"}
    env = environment(tmp_path, **variables)
    env["PATH"] = f"{fake}:{env['PATH']}"
    for name in ("Check what the patch touches", "Propose it"):
        subprocess.run(["bash", "-eo", "pipefail", "-c", step(propose, name)["run"]], cwd=red, env=env, check=True)
    assert FIX in git(origin, "show", "ramify/1:means.py")
    assert "--draft" in (temp / "gh").read_text().splitlines()
    assert shutil.which("gh", path=env["PATH"]) == str(fake / "gh")


def test_two_red_builds_of_tests_with_one_name_are_two_tasks():
    one, other = (
        SolveRequest("", (goal,), None, "pytest") for goal in ("tests/test_a.py::test_b", "tests/test_a.py::test_c")
    )
    ids = {_identity("tests-test_a-py", wanted, base) for wanted in (one, other) for base in ("1" * 40, "2" * 40)}
    assert len(ids) == 4
