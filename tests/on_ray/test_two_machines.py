"""A batch on a cluster of two machines, both on this one; `make ray-test` runs these."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.batch.batch import read_attempts
from benchmarks.reports.report import as_json, read_report
from tests.instances import make_benchmark

pytestmark = [pytest.mark.ray, pytest.mark.namespace, pytest.mark.timeout(1800)]

KEY = "ramify-test-key-0123456789"
OPTIONS = ("--sandbox", "namespace", "--reveal-tests", "-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}')


@dataclass
class Machines:
    """A cluster; the first machine is the one that batches are begun on."""

    cluster: Any
    others: list[Any]

    def busy(self, machine: Any) -> bool:
        """Whether an instance is being worked on there."""
        from ray._private.state import available_resources_per_node

        return not available_resources_per_node().get(machine.node_id, {}).get("CPU")

    def lose(self, machine: Any) -> None:
        self.cluster.remove_node(machine, allow_graceful=False)
        self.others.remove(machine)

    def add(self) -> Any:
        self.others.append(self.cluster.add_node(num_cpus=1, include_dashboard=False))
        return self.others[-1]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Without a key in their environment: the one of whoever begins a batch is another's."""
    ray_utils = pytest.importorskip("ray.cluster_utils")
    cluster = ray_utils.Cluster(
        initialize_head=True, connect=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    found = Machines(cluster, [])
    found.add()
    yield found
    import ray

    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    ids = tuple(f"calc-{number}" for number in range(4))
    folder = make_benchmark(tmp_path_factory.mktemp("suite") / "set", ids=ids, test_cmd=command, requirements=[])
    (folder / ".gitignore").write_text("*.bundle\n")
    return folder


@pytest.fixture(scope="module")
def locally(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same batch in this process's own threads."""
    out = tmp_path_factory.mktemp("local") / "out"
    assert begin(suite, out).wait() == 0
    return out


def begin(suite: Path, out: Path, *argv: str, address: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agent", "bench", "run", str(suite), "--out", str(out), *OPTIONS, *argv]
    env = os.environ | ({"RAY_ADDRESS": address} if address else {}) | {"RAMIFY_TEST_KEY": KEY}
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)


def until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not holds():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)


def told(out: Path) -> Any:
    """The report, without what the clock says."""
    report = json.loads(json.dumps(as_json(read_report(out))))
    for line in (report["total"], *report["instances"]):
        line.pop("seconds", None)
    return report


def test_a_machine_that_is_lost_in_the_middle_changes_nothing(
    machines: Machines, suite: Path, locally: Path, tmp_path: Path
) -> None:
    out, second = suite / "report", machines.others[0]  # left here, while `agent/analysis/report` is sent
    running = begin(suite, out, "--executor", "ray", "--ray-env", "RAMIFY_TEST_KEY", address=machines.cluster.address)
    until(lambda: machines.busy(second), running)
    machines.lose(second)
    said = running.communicate()[1]
    assert running.returncode == 0, said
    assert told(out) == told(locally)
    patches = [{name: attempt.patch for name, attempt in read_attempts(each).items()} for each in (out, locally)]
    assert patches[0] == patches[1]
    kept = sorted(path.name for path in out.iterdir() if path.name.startswith("calc"))
    assert kept == [f"calc-{number}" for number in range(4)]
    assert not any((out / name / "store").exists() for name in kept)
    written = [path for folder in (out, Path("/tmp/ray/session_latest")) for path in folder.resolve().rglob("*")]
    assert not any(KEY.encode() in path.read_bytes() for path in written if path.is_file())


def test_a_batch_that_is_interrupted_twice_loses_no_instance(machines: Machines, suite: Path, tmp_path: Path) -> None:
    out, second = tmp_path / "out", machines.add()
    running = begin(suite, out, "--executor", "ray", address=machines.cluster.address)
    until(lambda: machines.busy(second) and (out / "batch.json").exists(), running)
    for _ in range(2):
        running.send_signal(signal.SIGINT)
        time.sleep(0.1)
    said = running.communicate()[1]
    assert running.returncode == 130, said
    before = set(read_attempts(out))
    again = begin(suite, out, "--executor", "ray", address=machines.cluster.address)
    assert again.wait() == 0, again.communicate()[1]
    attempts = read_attempts(out)
    assert len(before) < len(attempts) == 4
    assert {attempt.state for attempt in attempts.values()} == {"done"}
    lines = (out / "results.jsonl").read_text().splitlines()
    assert len(lines) == 4


def test_whoever_watches_sees_what_the_machines_do(machines: Machines, suite: Path, tmp_path: Path) -> None:
    out, (screen, terminal) = tmp_path / "out", pty.openpty()
    command = [sys.executable, "-m", "agent", "bench", "run", str(suite), "--out", str(out), *OPTIONS]
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR")}
    env |= {"RAY_ADDRESS": machines.cluster.address, "TERM": "xterm"}
    shown = bytearray()
    with subprocess.Popen([*command, "--executor", "ray"], env=env, stderr=terminal) as running:
        os.close(terminal)
        with suppress(OSError):  # the other end is closed
            while piece := os.read(screen, 1 << 16):
                shown += piece
    os.close(screen)
    assert running.returncode == 0, shown.decode(errors="replace")
    assert b"waiting for a machine" in shown
    assert b"preparing the repository" in shown
    assert b"proposing an edit and testing it" in shown


def working() -> set[int]:
    """The processes that work on an instance."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    found = (line.split(maxsplit=1) for line in listed.splitlines())
    return {int(pid) for pid, name in found if name.startswith("ray::_task")}


def test_an_instance_whose_worker_is_lost_twice_is_tried_again_in_the_next_session(
    machines: Machines, suite: Path, tmp_path: Path
) -> None:
    out, killed, ids = tmp_path / "out", set[int](), ("--ids", "calc-0")
    running = begin(suite, out, "--executor", "ray", *ids, address=machines.cluster.address)
    for _ in range(2):
        until(lambda: bool(working() - killed), running)
        for pid in working() - killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    said = running.communicate()[1]
    assert running.returncode == 1, said
    (attempt,) = read_attempts(out).values()
    assert (attempt.state, attempt.error.split(":")[0]) == ("infra", "WorkersLost")
    assert begin(suite, out, "--executor", "ray", *ids, address=machines.cluster.address).wait() == 0
    assert [attempt.state for attempt in read_attempts(out).values()] == ["done"]
