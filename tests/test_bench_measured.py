"""What earlier batches measured tells what a new one may take; what they did not measure is not guessed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from agent.budget import Usage
from benchmarks.batch import measured_times
from benchmarks.batch.batch import Attempt, Batch, Identity
from benchmarks.batch.measured_times import Measured, Recorder, outlook, read_measured
from benchmarks.cli.app import app
from benchmarks.data.instances import Instance
from tests.instances import bare_instance, make_benchmark

NEVER = "ramify/tiny/auto was never run on their repositories with hidden tests"
IDENTITY = Identity("set", "hidden", "ramify/tiny/auto", "abc", 0)
ROW = Measured("/night", "a", "a/a", "hidden", "ramify/tiny/auto", "abc", 100.0, 4.0, 10, 1000, 0.5, 8)


def instance(name: str, repo: str) -> Instance:
    return replace(bare_instance(name), repo=repo)


def rows(repo: str, *seconds: float, **fields: Any) -> list[Measured]:
    return [replace(ROW, instance_id=f"{repo}{s}", repo=repo, seconds=s, **fields) for s in seconds]


TODO = [instance("1", "a/a"), instance("2", "a/a"), instance("3", "b/b")]


def said(*rows: Measured, todo: list[Instance] = TODO, workers: int | None = None) -> list[str]:
    return [line.strip() for line in outlook(todo, IDENTITY, rows, workers)]


class TestTheOutlook:
    def test_adds_up_the_quartiles_of_each_repository(self) -> None:
        lines = said(*rows("a/a", 3600, 7200, 10800), *rows("b/b", 1800, suite_s=95.0), workers=4)
        took = "about 4.5 h of machine time on 4 workers = 68 min (3.5 h to 5.5 h)"
        assert lines == [
            "from earlier batches:",
            "tests        one run of all takes: b/b 95 s, a/a 4.0 s",
            f"going by     {took}; 1.50 dollars; 3,000 tokens; 30 model calls; 24 test runs",
            "that rests on 4 instances of 2 repositories, by ramify/tiny/auto with the same settings",
        ]

    def test_says_which_instances_nothing_is_known_of_and_leaves_them_out(self) -> None:
        lines = said(*rows("a/a", 50))
        assert lines[2].startswith("going by     about 2 min of machine time (2 min to 2 min); 1.00 dollars")
        assert lines[-1] == (f"not known    1 of 3 instances: {NEVER} (b/b); the figures above leave them out")

    def test_gives_no_figure_where_nothing_like_it_was_measured(self) -> None:
        others = [*rows("a/a", 5, model="ramify/large/auto"), *rows("b/b", 5, mode="revealed", suite_s=None)]
        assert said(*others) == [
            "from earlier batches:",
            "tests        one run of all takes: a/a 4.0 s",
            f"not known    3 of 3 instances: {NEVER} (a/a, b/b)",
        ]
        assert said()[1:] == [f"not known    3 of 3 instances: {NEVER} (a/a, b/b)"]

    def test_says_when_the_settings_were_others_and_prefers_the_same(self) -> None:
        other = rows("a/a", 10, settings="def")
        assert said(*other)[3].endswith("by ramify/tiny/auto with other settings")
        assert "about 40 s" in said(*other, *rows("a/a", 20))[2]

    def test_counts_no_time_above_the_limit_of_seconds_where_the_settings_were_others(self) -> None:
        def said(settings: str) -> str:
            slow = rows("a/a", 10, settings=settings) + rows("a/a", 200, settings=settings)
            return outlook(TODO[:1], IDENTITY, slow, limit_s=60)[2]

        assert "of machine time (22 s to 48 s)" in said("def")
        assert "of machine time (58 s to 3 min)" in said("abc")

    def test_takes_no_unknown_price_for_nothing(self) -> None:
        assert "dollars not known, as a price was not" in said(*rows("a/a", 10, cost_usd=None), *rows("a/a", 20))[2]

    def test_of_a_search_without_a_model_is_about_time_and_test_runs(self) -> None:
        lines = said(*rows("a/a", 10, cost_usd=0.0, tokens=0, model_calls=0))
        assert lines[2] == "going by     about 20 s of machine time (20 s to 20 s); 16 test runs"

    def test_names_few_of_many_repositories(self) -> None:
        todo = [instance(str(number), f"r/{number}") for number in range(8)]
        assert said(todo=todo)[1].endswith("(r/0, r/1, r/2, r/3, r/4, 3 others)")
        known = [row for number in range(8) for row in rows(f"r/{number}", 1, suite_s=number)]
        assert said(*known, todo=todo)[1].endswith(
            "r/7 7.0 s, r/6 6.0 s, r/5 5.0 s, r/4 4.0 s, r/3 3.0 s, 3 others less"
        )

    def test_is_silent_when_nothing_is_left_to_do(self) -> None:
        assert said(ROW, todo=[]) == []


def ended(name: str, state: Any = "done", **facts: Any) -> Attempt:
    usage = Usage(model_calls=3, tokens_in=10, tokens_out=5, cost_usd=0.25, measurements=2)
    return Attempt(name, state, "hidden", facts={"seconds": 7.5, **facts}, usage=usage)


class TestWhatIsKept:
    @pytest.fixture
    def batch(self, tmp_path: Path) -> Any:
        batch = Batch(tmp_path / "night", IDENTITY)
        yield batch
        batch.close()

    def test_is_a_line_an_instance_that_came_to_its_end(self, batch: Batch, tmp_path: Path) -> None:
        recorder = Recorder(batch, [], tmp_path / "state" / "measured.jsonl")
        recorder.ended(TODO[0], ended("1"))
        recorder.ended(TODO[1], ended("2", "infra"))
        recorder.ended(TODO[1], None)
        recorder.ended(bare_instance("no repository"), ended("no repository"))
        (row,) = read_measured(tmp_path / "state" / "measured.jsonl")
        expected = replace(ROW, batch=str(batch.out), instance_id="1", seconds=7.5, suite_s=None)
        assert row == replace(expected, model_calls=3, tokens=15, cost_usd=0.25, measurements=2)

    def test_has_what_ended_before_it_was_kept_and_nothing_twice(self, batch: Batch, tmp_path: Path) -> None:
        batch.record(ended("1"))
        batch.record(ended("3", "infra"))
        for _ in range(2):
            Recorder(batch, TODO, tmp_path / "m").ended(TODO[1], ended("2"))
        assert [row.instance_id for row in read_measured(tmp_path / "m")] == ["1", "2"]
        assert len((tmp_path / "m").read_text().splitlines()) == 3

    def test_is_read_past_lines_of_other_versions_and_torn_ones(self, tmp_path: Path) -> None:
        file = tmp_path / "m"
        row = json.dumps({name: getattr(ROW, name) for name in ROW.__dataclass_fields__})
        file.write_text(f'{{"batch": "x"}}\n{row}\nnonsense\n[]\n{row[:40]}')
        assert read_measured(file) == [ROW]
        assert read_measured(tmp_path / "none") == []

    def test_forgets_the_oldest_when_there_is_too_much(
        self, batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(measured_times, "KEPT_BYTES", 1000)
        recorder = Recorder(batch, [], tmp_path / "m")
        for number in range(40):
            recorder.ended(TODO[0], ended("1", number=number))
            assert (tmp_path / "m").stat().st_size < 6000
        assert read_measured(tmp_path / "m")

    def test_is_no_reason_to_stop_where_it_cannot_be_written(
        self, batch: Batch, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "file").touch()
        Recorder(batch, [], tmp_path / "file" / "m").ended(TODO[0], ended("1"))
        assert "the time and cost of 1 cannot be recorded for later estimates" in caplog.text


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.usefixtures("namespaces")
def test_a_batch_says_what_the_one_before_it_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    command = "python3 -m pytest -q -p no:cacheprovider"
    folder = make_benchmark(tmp_path / "set", ids=("a", "b"), test_cmd=command, requirements=[])

    def run(out: str, *more: str) -> Result:
        options = ["--out", str(tmp_path / out), "--reveal-tests", "--max-nodes", "20", "--sandbox", "namespace"]
        options += ["-c", "sandbox.env.PYTEST_DISABLE_PLUGIN_AUTOLOAD='1'", *more]
        return CliRunner().invoke(app, ["run", str(folder), *options], catch_exceptions=False)

    first = run("first", "--ids", "a")
    assert "was never run on their repositories with revealed tests (example/calc)" in first.stderr
    (row,) = read_measured(measured_times.measured_file())
    assert (row.repo, row.mode, row.model) == ("example/calc", "revealed", "ramify/mutate/auto+revealed-tests")
    assert row.suite_s is not None
    assert 0 < row.suite_s < row.seconds
    second = run("second")
    assert "that rests on 1 instance of 1 repository, by ramify/mutate/auto+revealed-tests" in second.stderr
    assert "with the same settings" in second.stderr
    assert len(read_measured(measured_times.measured_file())) == 3
