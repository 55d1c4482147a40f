"""What a run may spend on models whose price is known, given or unknown, and for how long it pays a cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from agent.build.composition import make_parts, resume, start
from agent.build.factories import model_of
from agent.config import load
from agent.errors import ConfigError
from agent.models.halt import Halt
from agent.models.library import is_own_server
from agent.models.prices import UNPRICED_LIMITS, listed
from agent.run.events import Added, Started
from agent.run.run import Run
from agent.task import Task, dump_task
from sandboxes import Snapshot, Workspace
from tests.clients import KEY
from tests.commands import ramify
from tests.instances import make_benchmark
from tests.scripted import ScriptedModel
from tests.scripted_server import ScriptedServer, says
from tests.trees import node

SERVER = "http://127.0.0.1:1/v1"
LIMITS = tuple(UNPRICED_LIMITS.values())


@pytest.mark.namespace
@pytest.mark.parametrize(
    ("overrides", "limits"),
    [
        ([], LIMITS),
        (["model.price=[2, 10]"], (None, None)),
        (["budget.max_tokens=5"], (None, 5)),
        (["policy=mutate"], (None, None)),
        (["policy=mutate", "value=judge", "value.model=openai/tiny"], LIMITS),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_calls_and_tokens_are_limited_where_no_limit_of_dollars_can_hold(
    namespaces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: list[str], limits: object
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = load(overrides=["sandbox.kind=namespace", f"model.base_url={SERVER}", "policy=openai/tiny", *overrides])
    with Run.open(tmp_path / "run") as run, ExitStack() as held:
        budget = make_parts(settings, run, held, threading.Event()).budget
        assert (budget.max_calls, budget.max_tokens) == limits


def test_a_server_of_ones_own_is_in_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert is_own_server(SERVER)
    assert not is_own_server(None)
    assert not is_own_server("https://api.openai.com/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", SERVER)
    assert is_own_server(None)
    assert listed("openai/gpt-4o-mini", None) is None


@pytest.mark.filterwarnings("default")
@pytest.mark.slow
def test_a_hosted_model_is_priced_where_the_list_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert listed("openai/gpt-4o-mini", None) == pytest.approx((0.15, 0.6, 0.075, None))
    assert listed("anthropic/claude-sonnet-4-5", None) == pytest.approx((3.0, 15.0, 0.3, 3.75))
    assert listed("openrouter/someone/new", None) is None
    assert listed("ollama/llama2", None) is None


@pytest.mark.parametrize(
    ("suite_s", "setting", "kept"),
    [(150.0, "auto", "5m"), (151.0, "auto", "1h"), (9.0, "1h", "1h"), (900.0, "5m", "5m")],
)
@pytest.mark.parametrize("adapter", ["jest", "pytest"])
def test_a_provider_keeps_a_conversation_for_an_hour_where_the_tests_of_a_state_take_long(
    tmp_path: Path, suite_s: float, setting: str, kept: str, adapter: str
) -> None:
    settings = load(overrides=[f"model.cache_ttl={setting}"])
    told: list[Callable[[], str]] = []

    def made(name: str, *, cache_ttl: Callable[[], str], **others: object) -> ScriptedModel:
        told.append(cache_ttl)
        return ScriptedModel([], name)

    with Run.open(tmp_path / "run") as run, ExitStack() as held:
        model_of(settings, held, Halt(), made, run, "anthropic/claude-x")
        before = told[0]()
        base = node(0)
        run.record(
            Added(replace(base, report=replace(base.report, duration_s=suite_s, adapter=adapter)), elapsed_s=0.0)
        )
        by_scopes = adapter == "pytest" and setting == "auto"  # a run of a scope takes 60 s at most
        assert (before, told[0]()) == ("5m" if setting == "auto" else setting, "5m" if by_scopes else kept)


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (("solve", "--issue", "x", "--test", "true"), ("--max-usd", "2")),
        (("solve", "--issue", "x", "--test", "true"), ("-c", "budget.max_usd=2")),
        (("fix", "test_calc.py"), ("--max-usd", "2")),
        (("bench", "run", "set"), ("--max-usd", "2")),
        (("bench", "run", "set"), ("--total-usd", "2")),
    ],
    ids=" ".join,
)
def test_a_given_limit_of_dollars_that_cannot_be_kept_is_refused_before_anything_is_asked(
    tmp_path: Path, command: tuple[str, ...], given: tuple[str, ...]
) -> None:
    folder = make_benchmark(tmp_path / "set")
    env = {**os.environ, "OPENAI_API_KEY": KEY}
    with ScriptedServer(lambda body: says("x")) as server:
        options = ("--model", "openai/tiny", "-c", f"model.base_url={server.url}", "--out", tmp_path / "out")
        done = ramify(
            [*command, *options, *given], cwd=tmp_path if command[0] == "bench" else folder / "upstream", env=env
        )
    assert (done.returncode, len(server.requests)) == (3, 0), done.stderr
    option = "--total-usd" if "--total-usd" in given else "--max-usd"
    assert f"{option} 2 cannot be kept: the price of openai/tiny is unknown; give it with --model-price" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_that_is_resumed_or_begun_in_python_refuses_it_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    task = Task("t", "it is wrong", Workspace(path=tmp_path), "pytest")
    settings = load(flags={"policy.name": "openai/tiny", "model.base_url": SERVER})
    with Run.open(tmp_path / "run") as run:
        run.record(Started(dump_task(task), settings.model_dump(mode="json"), Snapshot("s0", "d0")))
    with pytest.raises(ConfigError, match="--max-usd 2 cannot be kept: the price of openai/tiny is unknown"):
        resume(tmp_path / "run", budget={"max_usd": 2.0})
    limited = load(flags={"policy.name": "openai/tiny", "model.base_url": SERVER, "budget.max_usd": 2.0})
    with pytest.raises(ConfigError, match="--max-usd 2 cannot be kept"):
        start(task, limited, tmp_path / "other")
