"""A batch on many machines, without them: what workers and the coordinator say to each other."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.budget import Budget, BudgetSpent, Stop, Usage
from agent.config import load
from agent.errors import ConfigError, UsageError
from agent.run.run import Run
from agent.settings import Settings
from benchmarks.batch.batch import Batch, Identity
from benchmarks.batch.cluster import requests, transfer
from benchmarks.batch.cluster.code_bundle import pack
from benchmarks.batch.cluster.coordinator import UNFINISHED, Coordinator, Superseded
from benchmarks.batch.cluster.neighbours import Neighbours
from benchmarks.batch.cluster.remote_budget import RemoteBudget
from benchmarks.batch.cluster.task import WorkerJob, work
from benchmarks.batch.cost_forecast import spent_so_far
from benchmarks.batch.status import InstanceStatus
from benchmarks.cli.app import app
from benchmarks.data.sources import open_source
from tests.instances import bare_instance, make_benchmark
from tests.rows import CLASSIC

CALL = Usage(model_calls=1, tokens_in=10, cost_usd=1.0)


def opened(out: Path, environment: dict[str, str] | None = None, **limits: float) -> Coordinator:
    coordinator = Coordinator(out, limits)
    coordinator.open(Usage(), 0.0, environment or {})
    return coordinator


def asking(coordinator: Coordinator) -> Callable[..., Any]:
    return lambda method, *arguments: getattr(coordinator, method)(*arguments)


def worker(coordinator: Coordinator, name: str = "a", attempt: int = 0, **limits: Any) -> Budget:
    """The budget of a run on another machine."""
    return Budget(**limits, parent=RemoteBudget(asking(coordinator), name, attempt, float("inf")))


class TestLimitsOfTheWholeBatch:
    def test_hold_for_all_workers_together(self, tmp_path: Path) -> None:
        coordinator = opened(tmp_path, max_usd=2.5)
        first, second = worker(coordinator), worker(coordinator, "b")
        with first.reserve(CALL) as charge, second.reserve(CALL):
            charge(CALL)
            with pytest.raises(BudgetSpent) as refused:
                second.reserve(CALL).__enter__()
        assert refused.value.stop is Stop.BATCH
        assert coordinator.spent() == CALL
        with second.reserve(CALL) as charge:
            charge(Usage(cost_usd=1.5))
        assert (first.stop(), first.used_up(), coordinator.spent().cost_usd) == (Stop.BATCH, True, 2.5)

    def test_count_what_is_spent_without_being_held_back(self, tmp_path: Path) -> None:
        coordinator = opened(tmp_path, max_measurements=1)
        worker(coordinator).charge(Usage(measurements=1))
        assert worker(coordinator, "b").stop() is Stop.BATCH

    def test_of_seconds_are_each_workers_own_clock(self, tmp_path: Path) -> None:
        left_s = opened(tmp_path, max_seconds=100.0).begin("a").left_s
        assert 0 < left_s <= 100

    def test_get_back_what_a_lost_worker_held_when_its_instance_begins_anew(self, tmp_path: Path) -> None:
        coordinator = opened(tmp_path, max_calls=1)
        coordinator.begin("a")
        with worker(coordinator, attempt=1).reserve(CALL) as charge:
            assert worker(coordinator, "b").stop() is Stop.BATCH
            coordinator.begin("a")
            assert worker(coordinator, "b").stop() is None
            charge(CALL)  # what a worker paid that was only taken for lost is paid
        assert coordinator.spent() == CALL

    def test_are_no_longer_open_to_a_worker_that_was_taken_for_lost(self, tmp_path: Path) -> None:
        coordinator = opened(tmp_path, max_calls=1)
        coordinator.begin("a")
        worker(coordinator, attempt=1).reserve(CALL).__enter__()
        coordinator.abandon("a")
        assert worker(coordinator, "b").stop() is None
        with pytest.raises(BudgetSpent):
            worker(coordinator, attempt=1).reserve(CALL).__enter__()
        coordinator.begin("a")
        with worker(coordinator, attempt=3).reserve(CALL):
            assert worker(coordinator, "b").stop() is Stop.BATCH


def test_the_coordinator_knows_the_status_of_an_instance_from_the_current_attempt_alone(tmp_path: Path) -> None:
    coordinator = opened(tmp_path)
    assert coordinator.status("a").doing == "waiting for a machine"
    coordinator.begin("a")
    assert coordinator.status("a") == InstanceStatus()
    coordinator.report_status("a", 1, InstanceStatus("ending", nodes=3))
    assert (coordinator.status("a").nodes, coordinator.status("b").nodes) == (3, 0)
    coordinator.begin("a")
    coordinator.report_status("a", 1, InstanceStatus("ending", nodes=4))
    assert coordinator.status("a") == InstanceStatus()


class TestTransfer:
    def test_bring_all_of_a_run_but_its_states_in_small_pieces(self, tmp_path: Path) -> None:
        run, pieces = tmp_path / "run", list[bytes]()
        for name in ("blobs", "store", "parts/1/store"):
            (run / name).mkdir(parents=True)
        noise = random.Random(0).randbytes(3 * transfer.PIECE)
        (run / "blobs" / "ab").write_bytes(noise)
        (run / "journal.jsonl").write_bytes(b"{}\n")
        (run / "store" / "state").write_bytes(noise)
        transfer.send(run, pieces.append)
        assert len(pieces) > 3
        assert max(map(len, pieces)) <= transfer.PIECE

        coordinator = opened(tmp_path / "out")
        coordinator.begin("a")
        for piece in pieces:
            coordinator.receive("a", 1, piece)
        coordinator.unpack("a", 1, True)
        arrived = tmp_path / "out" / "a"
        assert (arrived / "blobs" / "ab").read_bytes() == noise
        assert sorted(path.name for path in arrived.iterdir()) == ["blobs", "journal.jsonl", "parts"]

    def test_of_an_attempt_that_was_taken_for_lost_are_refused(self, tmp_path: Path) -> None:
        coordinator = opened(tmp_path)
        coordinator.begin("a")
        coordinator.receive("a", 1, b"half of it")
        assert coordinator.begin("a").attempt == 2
        with pytest.raises(Superseded, match="attempt 1"):
            coordinator.receive("a", 1, b"the rest")
        with pytest.raises(Superseded):
            coordinator.unpack("a", 1, True)
        assert list(tmp_path.rglob("*.tgz")) == []

    def test_make_room_for_that_of_a_later_attempt(self, tmp_path: Path) -> None:
        coordinator, run = opened(tmp_path / "out"), tmp_path / "run"
        run.mkdir()
        for attempt in (1, 2):
            (run / "journal.jsonl").write_text(str(attempt))
            assert coordinator.begin("a").attempt == attempt
            transfer.send(run, partial(coordinator.receive, "a", attempt))
            coordinator.unpack("a", attempt, True)
        places = (tmp_path / "out" / "a", tmp_path / "out" / UNFINISHED / "a" / "1")
        assert [(place / "journal.jsonl").read_text() for place in places] == ["2", "1"]


class TestTheCodeBundle:
    def packed(self, source: Path | str, out: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """What is sent, after a look at it as a worker has it."""
        folder.mkdir()
        job, shipped = pack(WorkerJob(str(source), False, Settings()), out, folder)
        monkeypatch.chdir(shipped["working_dir"])
        assert [each.id for each in open_source(job.source, folder / "clones").instances()]
        return shipped

    def test_leaves_the_batch_here_and_all_of_the_code_in_whatever_the_batch_is_called(
        self, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shipped = self.packed(suite / "instances.jsonl", suite / "report", tmp_path / "sent", monkeypatch)
        assert shipped["excludes"][1:] == ["/set/set/report"]
        assert (tmp_path / "sent/set/set/calc.bundle").is_file()
        assert not any((Path(code) / "set").exists() for code in shipped["py_modules"])
        assert {Path(code).name for code in shipped["py_modules"]} == {
            "agent",
            "benchmarks",
            "prompts",
            "ramify",
            "sandboxes",
        }

    def test_holds_nothing_that_lies_beside_a_table(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / ".env").write_text("OPENAI_API_KEY=not-to-be-sent")
        (tmp_path / "rows.json").write_text(json.dumps([CLASSIC]))
        self.packed(tmp_path / "rows.json", tmp_path / "out", tmp_path / "sent", monkeypatch)
        assert [path.name for path in (tmp_path / "sent" / "set").iterdir()] == ["rows.json"]

    def test_is_found_by_the_part_that_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "rows").mkdir()
        (tmp_path / "rows" / "dev.json").write_text(json.dumps([CLASSIC]))
        self.packed(f"{tmp_path}/rows:dev", tmp_path / "out", tmp_path / "sent", monkeypatch)


OPTIONS = ("sandbox.kind=namespace", "measure.baseline_runs=1", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}')


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    return make_benchmark(tmp_path_factory.mktemp("suite") / "set", test_cmd=command, requirements=[])


@pytest.mark.namespace
class TestAWorker:
    def job(self, suite: Path) -> WorkerJob:
        return WorkerJob(str(suite), reveal=True, settings=load([], OPTIONS))

    @pytest.mark.slow
    def test_hands_over_its_run_and_leaves_nothing_behind(
        self, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespaces: Path
    ) -> None:
        out, scratch = tmp_path / "out", tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(scratch))
        monkeypatch.delenv("RAY_TEST_KEY", raising=False)
        coordinator = opened(out, {"RAY_TEST_KEY": "not-to-be-found"})
        there = work(self.job(suite), "calc-1", asking(coordinator), threading.Event())

        assert (there.status, there.verified, there.stop) == ("solved", True, Stop.SOLVED)
        with Run.read(out / "calc-1") as run:
            assert run.ended is not None
            assert (
                run.journal.get_blob(str(run.ended.patch_blob))
                == there.patch
                == (out / "calc-1/patch.diff").read_bytes()
            )
        assert coordinator.spent() == there.usage
        status = coordinator.status("calc-1")
        assert (status.doing, status.nodes, status.best, status.usage) == ("ending", there.nodes, 1.0, there.usage)
        assert not (out / "calc-1" / "store").exists()
        assert list(scratch.iterdir()) == []
        assert os.environ.pop("RAY_TEST_KEY") == "not-to-be-found"
        assert not any(b"not-to-be-found" in path.read_bytes() for path in out.rglob("*") if path.is_file())

    def test_that_meets_a_limit_leaves_a_run_that_is_begun_anew_and_counts(
        self, suite: Path, tmp_path: Path, namespaces: Path
    ) -> None:
        coordinator = opened(tmp_path, max_measurements=1)
        assert work(self.job(suite), "calc-1", asking(coordinator), threading.Event()).stop is Stop.BATCH
        assert not (tmp_path / "calc-1").exists()
        assert (tmp_path / UNFINISHED / "calc-1" / "1" / "journal.jsonl").is_file()
        batch = Batch(tmp_path, Identity("set", "revealed", "mutate"))
        batch.close()
        assert spent_so_far(batch, []).measurements == coordinator.spent().measurements > 0


class TestRequests:
    def test_are_resources_by_the_names_that_ray_has(self) -> None:
        wanted = requests.read("CPU=2,memory=4e9,docker=1")
        assert requests.options(wanted) == {"num_cpus": 2.0, "memory": 4e9, "resources": {"docker": 1.0}}
        assert requests.options(requests.read("")) == {"num_cpus": 1.0, "resources": {}}

    def test_say_how_many_fit(self) -> None:
        machines = [{"CPU": 8.0, "docker": 3.0}, {"CPU": 3.0, "docker": 9.0}, {"CPU": 64.0}]
        assert requests.capacity(machines, requests.read("CPU=2,docker=1")) == 3 + 1
        assert requests.capacity(machines, requests.read("gpu=1")) == 0

    @pytest.mark.parametrize("text", ["CPU", "CPU=two", "CPU=-1", "CPU=inf", "=1"])
    def test_that_are_none_are_named(self, text: str) -> None:
        with pytest.raises(UsageError, match="--ray-resources"):
            requests.read(text)


class TestWhatCannotBe:
    def run(self, suite: Path, tmp_path: Path, *argv: str) -> BaseException | None:
        command = ["run", str(suite), "--out", str(tmp_path / "out"), *argv]
        return CliRunner().invoke(app, command).exception

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (["--executor", "slurm"], "unknown executor 'slurm'"),
            (["--ray-env", "KEY"], "--executor ray"),
            (["--executor", "ray", "--ray-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
            (["--executor", "ray", "--prune-images"], "--executor local"),
            (["--executor", "ray", "-c", "memory.path=/tmp/m.db"], "a file of one machine"),
            (["--executor", "ray", "--ray-address", "ray://head:10001"], "ray job submit"),
            (["--executor", "ray", "--ray-address", "127.0.0.1:1"], "`ray start --head`"),
            (["--executor", "ray", "--ray-address", "here"], "no Ray cluster answers at 'here'"),
        ],
    )
    def test_is_said_before_anything_is_begun(self, suite: Path, tmp_path: Path, argv: list[str], said: str) -> None:
        error = self.run(suite, tmp_path, *argv)
        assert isinstance(error, (UsageError, ConfigError))
        assert said in str(error)

    def test_without_ray_says_how_to_get_it(self, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)
        assert "pip install 'ray[default]'" in str(self.run(suite, tmp_path, "--executor", "ray"))


class TestNeighbours:
    """Instances are called by their environment and a number; machines by a small letter."""

    def chosen(self, names: str, was: dict[str, str], *ended: str | None) -> tuple[list[str], Neighbours]:
        neighbours = Neighbours(lambda each: each.id[0], lambda name: was.get(name, ""))
        waiting = deque(map(bare_instance, names.split()))
        return [neighbours.take(waiting, bare_instance(e) if e else None).id for e in ended], neighbours

    def test_begin_with_an_environment_each(self) -> None:
        assert self.chosen("D1 D2 D3 S1 S2 P1", {}, None, None, None, None)[0] == ["D1", "S1", "P1", "D2"]

    def test_go_where_their_environment_is_already(self) -> None:
        was = {"D1": "m", "S1": "n", "S2": "n", "D2": "m"}
        taken, neighbours = self.chosen("D1 D2 D3 S1 S2", was, None, None, "S1", "D1", "S2")
        assert taken == ["D1", "S1", "S2", "D2", "D3"]
        assert [neighbours.near(bare_instance(name)) for name in taken] == ["", "", "n", "m", "n"]

    def test_of_a_machine_that_is_not_known_are_taken_in_order(self) -> None:
        assert self.chosen("D1 D2 S1 D3", {}, None, "D1", "S1")[0] == ["D1", "S1", "D2"]

    def test_without_images_are_in_order_and_anywhere(self) -> None:
        neighbours = Neighbours(lambda each: "", lambda name: "m")
        waiting = deque(map(bare_instance, "abc"))
        assert [neighbours.take(waiting, bare_instance("x")).id for _ in range(3)] == ["a", "b", "c"]
        assert neighbours.near(bare_instance("b")) == ""


def test_the_coordinator_knows_where_an_instance_was_last(tmp_path: Path) -> None:
    coordinator = opened(tmp_path)
    assert coordinator.machine("a") == ""
    coordinator.moved("a", "first")
    coordinator.moved("a", "second")
    assert coordinator.machine("a") == "second"
