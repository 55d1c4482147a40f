"""Batches: every instance is attempted once, whatever happens, and a folder can be resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

import pytest

from agent.budget import Stop, Usage
from agent.config import load
from agent.errors import ConfigError, ModelError, UsageError
from agent.run.events import Event
from agent.solver.result import Result
from benchmarks.batch.batch import (
    Attempt,
    Batch,
    Identity,
    read_attempts,
    read_identity,
    refresh_predictions,
    settings_digest,
)
from benchmarks.batch.progress import BatchProgress
from benchmarks.batch.runner import StopSignal, run_batch, stop_on_signals
from benchmarks.data.instances import Instance
from sandboxes import SandboxLost, SandboxUnavailable
from tests.instances import bare_instance as instance

IDENTITY = Identity("set", "hidden", "ramify/mutate/best_first")


def result(
    run_dir: Path, *, stop: Stop = Stop.SOLVED, patch: bytes = b"patch\n", error: Exception | None = None
) -> Result:
    return Result(
        status="solved" if stop is Stop.SOLVED else "no_patch",
        patch=patch,
        verified=True,
        stop=stop,
        usage=Usage(measurements=3),
        best_node=1,
        run_dir=run_dir,
        nodes=2,
        seconds=0.5,
        baseline={"passed": 1, "failed": 1},
        final={"passed": 2, "failed": 0},
        error=error,
    )


def fill(
    out: Path,
    names: str,
    answer: Callable[[str, Path], Result],
    *,
    workers: int = 1,
    stopping: StopSignal | None = None,
) -> list[str]:
    """Run a batch of instances named by letters; which of them were begun, in order."""
    return halted(out, names, answer, workers=workers, stopping=stopping)[0]


def halted(
    out: Path,
    names: Iterable[str],
    answer: Callable[[str, Path], Result],
    *,
    workers: int = 1,
    stopping: StopSignal | None = None,
    lacking: Callable[[], str] = str,
) -> tuple[list[str], str]:
    """Run a batch of instances named by letters; which of them were begun, in order, and why no more were."""
    begun: list[str] = []

    def solve(each: Instance, run_dir: Path, cancel: threading.Event, on_event: Callable[[Event], None]) -> Result:
        begun.append(each.id)
        return answer(each.id, run_dir)

    batch = Batch(out, IDENTITY)
    instances = [instance(name) for name in names]
    try:
        with BatchProgress(len(instances), "hidden") as progress:
            stopping = stopping or StopSignal()
            why = run_batch(
                batch, instances, solve, workers=workers, stopping=stopping, observers=[progress], lacking=lacking
            )
    finally:
        batch.close()
    return begun, why


def states(out: Path) -> dict[str, str]:
    return {name: attempt.state for name, attempt in read_attempts(out).items()}


def test_what_is_done_is_not_done_again_and_what_the_world_failed_is(tmp_path: Path) -> None:
    ends = {"a": Stop.SOLVED, "b": Stop.NODES, "c": Stop.FAILED, "d": Stop.EXHAUSTED}
    fill(tmp_path, "abcd", lambda name, run: result(run, stop=ends[name]))
    assert states(tmp_path) == {"a": "done", "b": "limit", "c": "infra", "d": "done"}
    again = fill(tmp_path, "abcde", lambda name, run: result(run))
    assert again == ["c", "e"]
    assert set(states(tmp_path).values()) == {"done", "limit"}


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (SandboxLost("gone"), "infra"),
        (ModelError("quota"), "infra"),
        (ZeroDivisionError("a defect"), "infra"),
        (UsageError("no test fails"), "done"),
    ],
)
def test_an_error_of_one_instance_leaves_the_others_alone(tmp_path: Path, error: Exception, state: str) -> None:
    def answer(name: str, run: Path) -> Result:
        if name == "b":
            raise error
        return result(run)

    fill(tmp_path, "abc", answer)
    assert states(tmp_path) == {"a": "done", "b": state, "c": "done"}
    foreign = "ZeroDivisionError: " if isinstance(error, ZeroDivisionError) else ""
    assert read_attempts(tmp_path)["b"].error == f"{foreign}{error}"


@pytest.mark.parametrize("error", [ConfigError("no key"), SandboxUnavailable("no namespaces")])
def test_wrong_settings_stop_everything_and_are_tried_again(tmp_path: Path, error: Exception) -> None:
    def answer(name: str, run: Path) -> Result:
        raise error

    with pytest.raises(type(error)):
        fill(tmp_path, "abc", answer)
    assert states(tmp_path) == {"a": "config"}
    assert fill(tmp_path, "abc", lambda name, run: result(run)) == ["a", "b", "c"]


def test_an_exhausted_search_whose_sandbox_failed_is_not_the_solvers_fault(tmp_path: Path) -> None:
    fill(tmp_path, "a", lambda name, run: result(run, stop=Stop.EXHAUSTED, patch=b"", error=SandboxLost("gone")))
    assert states(tmp_path) == {"a": "infra"}


def test_a_model_that_never_answered_is_not_the_solvers_fault(tmp_path: Path) -> None:
    silence = ModelError("no answer before the time was up")
    fill(tmp_path, "a", lambda name, run: result(run, stop=Stop.TIME, patch=b"", error=silence))
    assert states(tmp_path) == {"a": "infra"}


def test_a_folder_of_something_else_is_not_filled(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "setup.py").touch()
    with pytest.raises(UsageError, match="is not empty, and holds no batch; name a new folder"):
        Batch(tmp_path, IDENTITY)
    assert not (tmp_path / "batch.json").exists()


def test_predictions_hold_every_answer_and_no_failure_of_the_world(tmp_path: Path) -> None:
    def answer(name: str, run: Path) -> Result:
        patch = {"a": b"\xff\r\n", "b": b""}.get(name, b"")
        return result(run, stop=Stop.FAILED if name == "c" else Stop.SOLVED, patch=patch)

    fill(tmp_path, "abc", answer)
    predictions = json.loads((tmp_path / "preds.json").read_text())
    assert sorted(predictions) == ["a", "b"]
    assert predictions["a"]["model_patch"].encode("utf-8", "surrogateescape") == b"\xff\r\n"


def test_predictions_take_a_hundredth_of_the_time_and_are_whole_in_the_end(tmp_path: Path) -> None:
    written, moments = 0, count()
    preds = tmp_path / "preds.json"
    batch = Batch(tmp_path, IDENTITY, now=lambda: next(moments))  # each look at the clock takes a second
    for number in range(250):
        batch.record(Attempt(str(number), "done", "hidden"))
        written += preds.exists()
        preds.unlink(missing_ok=True)
    batch.close()
    assert (written, len(json.loads(preds.read_text()))) == (3, 250)


def test_predictions_that_a_kill_left_behind_are_derived_anew(tmp_path: Path) -> None:
    fill(tmp_path, "ab", lambda name, run: result(run))
    (tmp_path / "preds.json").unlink()
    refresh_predictions(tmp_path)
    assert sorted(json.loads((tmp_path / "preds.json").read_text())) == ["a", "b"]
    (tmp_path / "preds.json").unlink()
    assert fill(tmp_path, "ab", lambda name, run: result(run)) == []
    assert sorted(json.loads((tmp_path / "preds.json").read_text())) == ["a", "b"]


@dataclass
class FullDisk:
    """An observer that cannot write what it is told."""

    def started(self, instance: Instance) -> None: ...

    def advanced(self, instance: Instance, news: object) -> None: ...

    def ended(self, instance: Instance, attempt: Attempt | None) -> None:
        raise OSError("no space left")


def test_what_runs_is_stopped_by_an_error_of_our_own(tmp_path: Path) -> None:
    stopped: list[bool] = []

    def solve(each: Instance, run_dir: Path, cancel: threading.Event, on_event: Callable[[Event], None]) -> Result:
        if each.id == "b":
            stopped.append(cancel.wait(100))
        return result(run_dir)

    batch, both = Batch(tmp_path, IDENTITY), [instance("a"), instance("b")]
    with pytest.raises(OSError, match="no space left"):
        run_batch(batch, both, solve, workers=2, stopping=StopSignal(), observers=[FullDisk()])
    batch.close()
    assert stopped == [True]
    assert list(read_attempts(tmp_path)) == ["a"]


def test_instances_run_side_by_side(tmp_path: Path) -> None:
    meeting = threading.Barrier(3, timeout=100)

    def answer(name: str, run: Path) -> Result:
        meeting.wait()
        return result(run)

    fill(tmp_path, "abc", answer, workers=3)
    assert set(states(tmp_path).values()) == {"done"}


def test_draining_begins_nothing_new_and_loses_nothing(tmp_path: Path) -> None:
    stopping = StopSignal()

    def answer(name: str, run: Path) -> Result:
        stopping.escalate()
        return result(run)

    assert fill(tmp_path, "abc", answer, stopping=stopping) == ["a"]
    assert states(tmp_path) == {"a": "done"}


def test_an_interrupted_instance_is_not_recorded_and_gone_on_with_in_its_own_folder(tmp_path: Path) -> None:
    stopping, folders = StopSignal(), []

    def interrupted(name: str, run: Path) -> Result:
        folders.append(run)
        stopping.stop()
        return result(run, stop=Stop.INTERRUPTED)

    def finished(name: str, run: Path) -> Result:
        folders.append(run)
        return result(run)

    fill(tmp_path, "a", interrupted, stopping=stopping)
    assert states(tmp_path) == {}
    fill(tmp_path, "a", finished)
    assert folders == [tmp_path / "a"] * 2


def test_a_limit_of_the_whole_batch_begins_nothing_more_and_what_it_ended_is_gone_on_with(tmp_path: Path) -> None:
    ends = {"a": Stop.SOLVED, "b": Stop.BATCH}
    assert fill(tmp_path, "abc", lambda name, run: result(run, stop=ends[name])) == ["a", "b"]
    assert states(tmp_path) == {"a": "done"}
    assert fill(tmp_path, "abc", lambda name, run: result(run)) == ["b", "c"]


def test_an_attempt_of_an_older_version_tells_what_it_spent(tmp_path: Path) -> None:
    row = Attempt("a", "done", "hidden", facts={"tokens": 7, "cost_usd": None, "model_calls": 2}).to_row()
    del row["usage"]
    assert Attempt.from_row(row).usage == Usage(model_calls=2, tokens_in=7)


def test_a_folder_never_mixes_two_kinds_of_batch(tmp_path: Path) -> None:
    Batch(tmp_path, IDENTITY).close()
    with pytest.raises(UsageError, match="mode 'hidden' and not 'revealed'"):
        Batch(tmp_path, Identity(IDENTITY.source, "revealed", IDENTITY.model))
    Batch(tmp_path, IDENTITY).close()


def test_a_folder_never_mixes_settings_or_seeds(tmp_path: Path) -> None:
    first = replace(IDENTITY, settings="aa", seed=1)
    Batch(tmp_path, first).close()
    for other, said in (
        (replace(first, settings="bb"), "other settings: it only recorded their digest, aa and not bb"),
        (replace(first, seed=2), "seed 1"),
    ):
        with pytest.raises(UsageError, match=said):
            Batch(tmp_path, other)
    Batch(tmp_path, first).close()


def test_settings_that_differ_from_those_of_a_folder_are_named_with_both_values(tmp_path: Path) -> None:
    def identity(*given: str) -> Identity:
        return Identity.of("set", "hidden", "m", "suite", load([], given))

    Batch(tmp_path, identity()).close()
    said = r"holds other settings: search\.name 'auto' and not 'mcts', budget\.max_seconds 3600\.0 and not 300\.0;"
    with pytest.raises(UsageError, match=said):
        Batch(tmp_path, identity("budget.max_seconds=300.0", "search=mcts"))
    Batch(tmp_path, identity("model.base_url=http://127.0.0.1:1/v1")).close()


def test_a_folder_of_a_version_that_kept_less_is_gone_on_with(tmp_path: Path) -> None:
    old = {key: value for key, value in asdict(IDENTITY).items() if key not in ("settings", "seed", "suite", "chosen")}
    (tmp_path / "batch.json").write_text(json.dumps(old))
    Batch(tmp_path, replace(IDENTITY, settings="aa", seed=1, suite="bb")).close()
    assert read_identity(tmp_path) == IDENTITY


def test_a_batch_of_another_snapshot_of_its_source_is_refused(tmp_path: Path) -> None:
    first = replace(IDENTITY, suite="aa")
    Batch(tmp_path, first).close()
    with pytest.raises(UsageError, match=r"suite 'aa' and not 'bb' \(the instances of set have changed"):
        Batch(tmp_path, replace(first, suite="bb"))
    Batch(tmp_path, first).close()


def test_settings_are_told_apart_whatever_their_seed() -> None:
    made = [load([], given) for given in ([], ["seed=7"], ["budget.max_nodes=7"], ["budget.max_nodes=1000"])]
    plain, seeded, smaller, spelled = map(settings_digest, made)
    assert plain == seeded == spelled != smaller


@pytest.mark.parametrize(
    "given",
    [
        ["model.base_url=http://127.0.0.1:1/v1", "model.price=[1, 2]", "model.max_concurrent=3", "model.stream=false"],
        ["model.connect_s=1", "model.first_token_s=1", "model.idle_s=1", "model.total_s=1"],
        ["sandbox.paranoid=true"],
    ],
)
def test_settings_that_change_no_solver_are_not_told_apart(given: list[str]) -> None:
    assert settings_digest(load([], given)) == settings_digest(load())
    warm = ["model.temperature=1", "memory.demos=1"]
    assert settings_digest(load([], [*given, *warm])) == settings_digest(load([], warm)) != settings_digest(load())


def test_of_a_memory_it_counts_that_there_is_one() -> None:
    one, other = (settings_digest(load([], [f"memory.path={path}"])) for path in ("/a.db", "/b.db"))
    assert one == other != settings_digest(load())


def test_a_batch_that_another_process_fills_is_refused(tmp_path: Path) -> None:
    batch = Batch(tmp_path, IDENTITY)
    with pytest.raises(UsageError, match="in use"):
        Batch(tmp_path, IDENTITY)
    batch.close()


def test_a_kill_in_the_middle_of_a_line_loses_that_attempt_only(tmp_path: Path) -> None:
    fill(tmp_path, "ab", lambda name, run: result(run))
    results = tmp_path / "results.jsonl"
    results.write_bytes(results.read_bytes()[:-20])
    assert states(tmp_path) == {"a": "done"}
    assert fill(tmp_path, "ab", lambda name, run: result(run)) == ["b"]


def test_the_first_signal_drains_and_the_second_cancels(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_signals() as stopping:
        signal.raise_signal(signal.SIGINT)
        assert (stopping.drain.is_set(), stopping.cancel.is_set()) == (True, False)
        assert "no new instances start" in (said := capsys.readouterr().err)
        assert "Ctrl-C again" in said
        signal.raise_signal(signal.SIGINT)
        assert stopping.cancel.is_set()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_cancels_at_once() -> None:
    with stop_on_signals() as stopping:
        signal.raise_signal(signal.SIGTERM)
        assert (stopping.drain.is_set(), stopping.cancel.is_set()) == (True, True)


def test_progress_without_a_terminal_is_a_line_at_the_beginning_and_end_of_an_instance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path, "ab", lambda name, run: result(run))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["hidden a: started", "[1/2] hidden a: done, solved (2 states, 0 s, stop: solved)"]
    assert len(lines) == 4


def test_an_attempt_survives_its_line() -> None:
    attempt = Attempt("a", "limit", "revealed", b"\x80\n", "why", {"nodes": 3})
    assert Attempt.from_row(json.loads(json.dumps(attempt.to_row()))) == attempt


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    heavy = ("networkx", "pydantic", "litellm", "rich.live")
    code = f"import sys, benchmarks.cli.app; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
