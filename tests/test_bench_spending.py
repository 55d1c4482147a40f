"""Limits of a whole batch: what it may come to is said first, and it stops at them and can be resumed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from agent.budget import Budget, Usage
from agent.config import load
from benchmarks.batch.batch import Attempt, read_attempts
from benchmarks.batch.cost_forecast import forecast
from benchmarks.cli.app import app
from tests.instances import bare_instance, make_benchmark
from tests.scripted_server import ScriptedServer, says

ENDED = {"status": "solved", "nodes": 2, "seconds": 10.0, "stop": "solved"}
REPAIR = says(
    None,
    ("edit", {"path": "calc.py", "old": "return a - b", "new": "return a + b"}),
    ("run_tests", {}),
    tokens_in=10_000,
)


def estimate(*attempts: Attempt, total: Budget | None = None, **settings: Any) -> list[str]:
    flags = {"policy.name": "openai/tiny", "model.base_url": "http://127.0.0.1:1/v1", "model.price": [1.0, 2.0]} | {
        key.replace("__", "."): value for key, value in settings.items()
    }
    todo = [bare_instance(name) for name in "abc"]
    return [line.strip() for line in forecast(todo, attempts, load(flags=flags), total or Budget())]


def attempt(name: str, dollars: float, *, state: Any = "done", unpriced: int = 0) -> Attempt:
    usage = Usage(model_calls=2, tokens_in=1000, cost_usd=dollars, unpriced_calls=unpriced, measurements=3)
    return Attempt(name, state, "hidden", facts=ENDED, usage=usage)


class TestTheEstimate:
    def test_is_every_instance_at_its_limit_when_nothing_is_known(self) -> None:
        lines = estimate(budget__max_usd=2.5)
        assert lines[0] == "estimate for 3 instances:"
        assert "dollars      at most 7.50 (3 x 2.50)" in lines
        assert "tokens       no limit" in lines
        after = "and after it the end of the step in progress and the verification of the patch"
        assert f"seconds      at most 10,800 (3 x 3,600), {after}" in lines

    def test_goes_by_what_has_ended(self) -> None:
        lines = estimate(attempt("x", 0.2), attempt("y", 0.4), attempt("z", 9.0, state="infra"))
        assert "dollars      at most 9.00 (3 x 3.00); about 0.90 going by the 2 that ended (0.30 each)" in lines
        assert "test runs    no limit; about 9 going by the 2 that ended (3 each)" in lines

    def test_takes_no_call_whose_price_is_unknown_for_a_free_one(self) -> None:
        assert "dollars      at most 9.00 (3 x 3.00)" in estimate(attempt("x", 0.0, unpriced=1))

    def test_of_a_model_of_unknown_price_says_what_holds_instead(self) -> None:
        lines = estimate(attempt("x", 0.0, unpriced=2), model__price=None)
        assert "dollars      the price of openai/tiny is unknown: calls and tokens are limited instead" in lines[1]
        assert "model calls  at most 3,000 (3 x 1,000); about 6 going by the one that ended (2 each)" in lines

    def test_says_where_the_batch_stops(self) -> None:
        total = Budget(max_usd=5.0)
        total.start(spent=Usage(cost_usd=1.25), nodes=0, elapsed_s=0)
        assert "dollars      at most 9.00 (3 x 3.00); stops at 5.00 in all, 1.25 spent so far" in estimate(total=total)

    def test_of_a_search_without_a_model_is_about_time_and_test_runs(self) -> None:
        assert [line.split("  ")[0] for line in estimate(policy__name="mutate")[1:]] == ["test runs", "seconds"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with ScriptedServer(lambda body: REPAIR) as server:
        yield server


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.usefixtures("namespaces")
def test_a_batch_stops_at_its_limit_and_goes_on_with_a_higher_one(tmp_path: Path, server: ScriptedServer) -> None:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    folder = make_benchmark(tmp_path / "set", ids=("a", "b"), test_cmd=command, requirements=[])
    out = tmp_path / "out"

    def run(dollars: float) -> Result:  # a call costs one
        options = ["--out", out, "--reveal-tests", "--policy", "openai/tiny", "--sandbox", "namespace"]
        options += ["-c", "measure.baseline_runs=1", "-c", "sandbox.env.PYTEST_DISABLE_PLUGIN_AUTOLOAD='1'"]
        options += ["-c", f"model.base_url={server.url}", "--model-price", "100,0", "--total-usd", dollars]
        return CliRunner().invoke(app, ["run", *map(str, (folder, *options))], catch_exceptions=False)

    stopped = run(1.0)
    assert stopped.exit_code == 1, stopped.stderr
    assert "dollars      at most 6.00 (2 x 3.00); stops at 1.00 in all, 0.00 spent so far" in stopped.stderr
    assert "no more instances were started: a limit of the whole batch was reached; raise it" in stopped.stderr
    assert "1 of 2 instances still to do; the same command then continues" in stopped.stderr
    assert {name: a.usage.cost_usd for name, a in read_attempts(out).items()} == {"a": 1.0}

    again = run(1.5)
    assert again.exit_code == 0, again.stderr
    assert "stops at 1.50 in all, 1.00 spent so far; about 1.00 going by the one that ended (1.00 each)" in again.stderr
    assert len(json.loads((out / "preds.json").read_text())) == 2
    assert len(server.requests) == 2
