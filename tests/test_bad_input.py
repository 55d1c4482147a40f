"""What a person gets wrong, or a repository holds, ends in one line that says what to do, and loses nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests import commands
from tests.projects import SOURCE, TESTS, commit, git, means
from tests.tiers import slow_but

pytestmark = pytest.mark.namespace

SOLVE = ["solve", "--issue", "mean([]) divides by zero"]
ENVIRONMENT = {**os.environ, "NO_COLOR": "1"}
PLAIN = ("-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}', "-c", "measure.baseline_runs=1")


def solve(repo, run, *options, before=()):
    command = [*before, sys.executable, "-m", "agent", *SOLVE, *PLAIN, "--repo", str(repo), "--out", str(run), *options]
    return subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=500, check=False)


def last_line(done):
    return done.stderr.decode().rstrip().splitlines()[-1]


@pytest.mark.slow
def test_a_source_that_cannot_be_parsed_is_named(tmp_path):
    broken = SOURCE.replace("def mean(numbers):", "def mean(numbers)")
    repo = commit(tmp_path / "repo", {"means.py": broken, "test_means.py": TESTS})
    done = solve(repo, tmp_path / "run")
    assert done.returncode == 1
    said = done.stderr.decode()
    assert "test_means.py cannot be imported" in said
    assert "SyntaxError" in said
    assert last_line(done).startswith("next     ramify show ")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    slow_but(
        [(("--goal-test", "test_means.py::test_mean_of_nothin"), 2, "test_mean_of_nothing")],
        [
            (("--test", "python3 -m pytest -q nowhere"), 2, "--test"),
            (("--test", "no-such-program"), 2, "no-such-program"),
            (("--goal-test", "test_means.py::test_mean_of_some"), 2, "passes already"),
            (("--goal-test", "test_means.py::test_mean_of_nothin"), 2, "test_mean_of_nothing"),
        ],
    ),
)
def test_tests_that_say_nothing_are_refused_with_a_remedy(tmp_path, options, code, says):
    command = [*SOLVE, *PLAIN, "--repo", means(tmp_path / "repo"), "--out", tmp_path / "run", *options]
    done = commands.ramify(command, cwd=tmp_path, env=ENVIRONMENT)
    assert (done.returncode, done.stdout) == (code, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ramify: ")
    assert says in last


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root, to mount a small disk")
@pytest.mark.parametrize("size", ["300k", "1m"])
def test_a_full_disk_is_named(tmp_path, size):
    small = tmp_path / "small"
    small.mkdir()
    mount = f'mount -t tmpfs -o size={size} none {small} && exec "$@"'
    done = solve(means(tmp_path / "repo"), small / "run", before=("unshare", "-m", "sh", "-c", mount, "sh"))
    assert done.returncode == 6
    assert last_line(done).startswith("ramify: ")
    assert "disk" in last_line(done)
    assert "Traceback" not in done.stderr.decode()


@pytest.mark.slow
def test_a_repository_with_everything_odd_gets_a_patch_that_applies(tmp_path):
    repo, vendored = means(tmp_path / "repo"), means(tmp_path / "vendored")
    (repo / "means.py").write_bytes(SOURCE.replace("\n", "\r\n").rstrip("\r\n").encode())
    (repo / "data.bin").write_bytes(bytes(range(256)))
    (repo / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"no newline at the end")
    (repo / "link.py").symlink_to("means.py")
    (repo / "nowhere").symlink_to("/does/not/exist")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(vendored), "vendored")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "odd")
    done = solve(repo, tmp_path / "run", "--test", "python3 -m pytest -q test_means.py")
    assert done.returncode == 0, done.stderr.decode()
    subprocess.run(["git", "apply", "--check", "-"], cwd=repo, input=done.stdout, check=True)
    subprocess.run(["git", "apply", "-"], cwd=repo, input=done.stdout, check=True)
    repaired = (repo / "means.py").read_bytes()
    assert repaired.count(b"\r\n") == SOURCE.count("\n") - 1
    assert not repaired.endswith(b"\n")
    assert git(repo, "status", "--porcelain").split() == ["M", "means.py"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("solve", "--issue", "x", "-c", "deep.toml"), 3, "deep.toml is not TOML"),
        (("solve", "--issue", "x", "-c", "long.toml"), 3, "long.toml is not TOML"),
        (("solve", "--issue", "x", "--out", "deep.toml/run"), 6, "deep.toml/run"),
        (("solve", "--issue", "x", "--out", "a" * 300), 6, "File name too long"),
        (("solve", "--issue", "x", "--from-junit", "bomb.xml"), 2, "a document type, which no test runner writes"),
        (("solve", "--issue", "x", "--from-junit", "encoded.xml"), 2, "an encoding that cannot be read"),
        (("diagnose", "deep.json"), 2, "nested too deeply"),
        (("show", "\x1b[2J\u202e"), 2, "there is no run \\x1b[2J\\u202e; `ramify runs`"),
        (("export", "run", "--format", "sft", "--out", "o", "--exclude", "deep.json"), 2, "nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_read_is_no_defect_and_its_name_orders_nothing(tmp_path, arguments, code, says):
    means(tmp_path / "repo")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "journal.jsonl").touch()
    (tmp_path / "deep.toml").write_text("x = " + "[" * 100_000)
    (tmp_path / "long.toml").write_text("workers = " + "9" * 5000)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "bomb.xml").write_text('<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;">]><testsuites>&c;</testsuites>')
    (tmp_path / "encoded.xml").write_text('<?xml version="1.0" encoding="zz"?><a/>')
    repo = ("--repo", "repo") if arguments[0] == "solve" else ()
    done = commands.ramify([*arguments, *repo], cwd=tmp_path, env=ENVIRONMENT)
    assert done.returncode == code
    assert says in done.stderr.rstrip().splitlines()[-1]
    assert "\x1b" not in done.stderr
    assert "defect" not in done.stderr


@pytest.mark.slow
def test_a_package_that_is_nested_too_deeply_names_no_test_runner(tmp_path):
    files = {"means.py": SOURCE, "test_means.py": TESTS, "package.json": "[" * 100_000}
    assert solve(commit(tmp_path / "repo", files), tmp_path / "run").returncode == 0
