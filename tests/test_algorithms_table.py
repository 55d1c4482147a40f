"""The table that sets the searches side by side: what it makes of batches, and that it fills them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.perf.algorithms import Batch, cells
from tests.instances import make_benchmark


def test_runs_that_solved_nothing_are_paid_for_by_those_that_did():
    batch = Batch(tasks=3, spent=60, solved=(4, 16))
    assert cells("mcts", [batch]) == ("`mcts`", "1", "2.0 of 3", "60.0", "30.0", "10.0")


def test_seeds_that_differ_give_a_mean_and_a_range():
    batches = [Batch(3, 60, (4, 16)), Batch(3, 80, (4,))]
    assert cells("mcts", batches)[2:] == ("1.5 (1-2) of 3", "70.0 (60-80)", "55.0 (30-80)", "7.0 (4-10)")


@pytest.mark.slow
@pytest.mark.namespace
def test_a_batch_is_made_once(tmp_path: Path, namespaces: Path):
    command = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -q -p no:cacheprovider"
    source = str(make_benchmark(tmp_path / "set", test_cmd=command, requirements=[]))
    options = ["--searches", "best_first", "--seeds", "0", "--measurements", "9"]
    first = table("algorithms", source, "--out", str(tmp_path / "out"), *options)
    assert "| `best_first` | 1 | 1.0 of 1 |" in first.stdout
    again = table("algorithms", source, "--out", str(tmp_path / "out"), *options)
    assert again.stdout == first.stdout
    assert "0 of 1 instance to do" in again.stderr


def table(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.perf.{script}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
