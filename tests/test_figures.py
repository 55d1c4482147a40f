"""The figures of the flywheel, from repositories to the table, without a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from random import Random

import pytest

from agent.actions import Edit
from agent.errors import UsageError
from agent.models import Ask, directly
from agent.policy.edit.ranking import Choice
from benchmarks.data.jsonl_ledger import Ledger
from benchmarks.flywheel import figures
from benchmarks.flywheel.ranked_edits import Remembered
from tests.projects import commit
from tests.test_swept import TESTS, TILL

SHELF = """def crowded(rows, most):
    found = []
    for row in rows:
        if len(row) > most:
            found.append(row)
    return found


def widest(rows):
    best = 0
    for row in rows:
        best = max(best, len(row) + 1)
    return best - 1
"""
SHELF_TESTS = """from shelf import crowded, widest


def test_crowded():
    assert crowded(["ab", "abc", ""], 2) == ["abc"]


def test_widest():
    assert widest(["ab", "abc", ""]) == 3
    assert widest([""]) == 0
"""


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("repositories")
    till = commit(place / "till", {"till.py": TILL, "test_till.py": TESTS})
    shelf = commit(place / "shelf", {"shelf.py": SHELF, "test_shelf.py": SHELF_TESTS})
    return ["--repository", str(till), "--repository", str(shelf), "--hold-out", "shelf"]


@pytest.fixture(scope="module")
def options(repositories: list[str], namespaces: Path) -> list[str]:
    few = ["--mutants", "6", "--held-out-mutants", "6", "--width", "15", "--workers", "1"]
    box = ["-c", "sandbox.kind=namespace", "-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}']
    return [*repositories, *few, *box, "--a-function", "3"]


@pytest.fixture(scope="module")
def out(options: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figures") / "out"
    assert figures.main(["--out", str(folder), *options]) == 0
    return folder


@pytest.mark.slow
def test_every_order_solves_the_same_bugs_of_the_repository_that_is_held_out(out: Path) -> None:
    [split] = (scores := json.loads((out / "scores.json").read_text()))
    assert split == "repositories"
    assert set(scores[split]) == {"uniform", "mutate", "counts", "counts+mutate"}
    bugs = {frozenset(played) for played in scores[split].values()}
    assert len(bugs) == 1
    assert all(bug.startswith("shelf-") for bug in bugs.pop())
    assert all(solved and 1 <= tried <= 15 for played in scores[split].values() for solved, tried in played.values())


@pytest.mark.slow
def test_figures_begun_again_try_nothing_again(
    out: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = {path: path.stat().st_mtime_ns for path in out.glob("tried/*/*/*.jsonl")}
    assert figures.main(["--out", str(out), *options]) == 0
    assert made == {path: path.stat().st_mtime_ns for path in out.glob("tried/*/*/*.jsonl")} != {}
    assert "leaks: 0" in capsys.readouterr().out


@pytest.mark.slow
def test_figures_of_other_bugs_do_not_go_into_the_same_folder(out: Path, options: list[str]) -> None:
    with pytest.raises(UsageError, match=r"was made with width 15, not 20: use the same, or name a new --out"):
        figures.main(["--out", str(out), *options, "--width", "20"])


def test_what_a_model_answered_is_not_asked_for_again(tmp_path: Path) -> None:
    class Once:
        version = "once"

        def __init__(self, *answers: list[float]) -> None:
            self.answers = list(answers)

        def weights(self, choices: Sequence[Choice], ask: Ask, rng: Random) -> list[float]:
            return self.answers.pop()

    edits = [Choice((Edit("m.py", "a\n", new, 1),), 0.5, None) for new in ("b\n", "c\n")]
    for ranking in (Once([-inf, -1.5]), Once()):
        with closing(Ledger(tmp_path / "asked.jsonl")) as kept:
            remembered = Remembered(ranking, kept)
            assert [remembered.weights(edits, directly, Random(0)) for _ in range(2)] == [[-inf, -1.5]] * 2
    with closing(Ledger(tmp_path / "asked.jsonl")) as kept, pytest.raises(IndexError):
        Remembered(Once(), kept).weights(edits[:1], directly, Random(0))


def test_an_error_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    command = [sys.executable, "-m", "benchmarks.flywheel.figures", "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, "--repository", str(tmp_path / "bare")], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'bare'} is not a git repository")


POOL = """
import multiprocessing, os, subprocess, time
from agent.learning.managed_process import gone_after, leaving_by_signals
from benchmarks.flywheel.sharing import end_with_parent

def work():
    with leaving_by_signals():
        begun = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        with gone_after(begun):
            print(os.getpid(), flush=True)
            time.sleep(3600)

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1, end_with_parent) as pool:
        pool.apply(work)
"""


def test_workers_and_what_they_began_end_with_a_program_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    program = subprocess.Popen([sys.executable, tmp_path / "pool.py"], stdout=subprocess.PIPE, env=environment)
    assert program.stdout is not None
    assert int(program.stdout.readline()) != program.pid
    program.kill()
    assert program.stdout.read() == b""  # the worker and what it began hold it, too
    program.wait()
