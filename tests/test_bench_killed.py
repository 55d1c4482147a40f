"""A batch whose runner is killed in the midst of its work goes on as if nothing had been."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from benchmarks.batch.batch import read_attempts
from benchmarks.perf.killed import attempted_twice, bench, differences, events, interrupted, moments
from tests.instances import make_benchmark

pytestmark = pytest.mark.namespace

OPTIONS = ("--reveal-tests", "--max-nodes", 3, "--sandbox", "namespace", "-c")
SETTINGS = 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}'


@pytest.mark.slow
def test_no_instance_is_lost_or_run_twice_and_the_report_is_the_same(tmp_path: Path) -> None:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    folder = make_benchmark(tmp_path / "set", ids=("a", "b"), test_cmd=command, requirements=[])
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    subprocess.run(bench("run", folder, "--out", alone, *OPTIONS, SETTINGS), check=True, capture_output=True)
    twice = interrupted(
        bench("run", folder, "--out", killed, *OPTIONS, SETTINGS), killed, moments(events(alone), 1, Random(1))
    )
    assert (len(twice.kills), twice.sessions) == (1, 2)
    assert sorted(read_attempts(killed)) == ["a", "b"]
    assert attempted_twice(killed) == []
    assert list(differences(alone, killed, 1)) == []
