"""The process reward model as a value: searches in a real sandbox, against a scripted server over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import pytest

from agent.actions import Edit, Observation
from agent.build.composition import start
from agent.config import load
from agent.errors import ConfigError
from agent.evaluate.value.prm import Prm
from agent.models import Completion
from agent.models.scripted import ScriptedModel, answer
from agent.run.run import Run
from agent.run.tree.node import Step
from tests.exporting import rows
from tests.instances import make_benchmark
from tests.projects import SOURCE, TESTS, commit, task
from tests.scripted_server import Reply, ScriptedServer, says
from tests.test_bench_cli import ramify_bench
from tests.test_judging import by_tests, case

UNSOLVABLE = {"means.py": SOURCE, "test_means.py": TESTS.replace("mean([]) == 0.0", "mean([]) == 42.5")}
"""No single edit of `mutate` makes it pass, and the first ones break nothing: all states are alike to the tests."""
LIKED = "len(numbers) <= 0"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def likes(body: Mapping[str, Any]) -> Reply:
    """A process reward model that likes one edit."""
    if LIKED in body["messages"][-1]["content"]:
        return says("yes", logprobs=[-0.25, -0.125], tokens_in=700)
    return says("no", logprobs=[-0.125], tokens_in=700)


def searched(folder: Path, value: str) -> tuple[Path, ScriptedServer]:
    beam = {"search.name": "beam", "search.width": 1, "search.children": 3, "budget.max_nodes": 5}
    with ScriptedServer(likes) as server:
        model = {"value.model": "openai/prm", "model.base_url": server.url} if value == "prm" else {}
        given = {"policy.name": "mutate", "value.name": value, "sandbox.kind": "namespace", **beam, **model}
        start(task(commit(folder / "repo", UNSOLVABLE)), load(flags=given), folder / "run")
    return folder / "run", server


@pytest.mark.namespace
class TestASearch:
    @pytest.mark.parametrize("value", ["tests", "prm"])
    def test_goes_on_from_the_state_that_the_model_likes_where_the_tests_say_nothing(
        self, namespaces: Path, tmp_path: Path, value: str
    ) -> None:
        folder, _ = searched(tmp_path, value)
        with Run.read(folder) as run:
            liked = next(node.id for node in run.tree if "< -> <=" in node.label)
            assert any(liked in node.parents for node in run.tree) is (value == "prm")
            assert len({node.evaluation.by_tests for node in run.tree}) == 1

    def test_asks_once_a_state_in_the_words_of_the_rows_and_records_and_pays_for_it(
        self, namespaces: Path, tmp_path: Path
    ) -> None:
        folder, server = searched(tmp_path, "prm")
        with Run.read(folder) as run:
            asked = run.asked
            assert [(call.node, call.model) for call in asked] == [(node, "openai/prm") for node in (0, 0, 0, 2)]
            assert all(call.sampling["logprobs"] and call.sampling["max_tokens"] == 16 for call in asked)
            told = [list(run.conversations.whole(call.conversation.digest))[1:] for call in asked]
            assert told == [row["question"] for row in rows(run, "prm")]
            parts = [node.evaluation.parts["prm"] for node in run.tree if node.parents]
            liked, other = exp(-0.375), 1 - exp(-0.125)
            assert parts == pytest.approx([other, liked, other, liked])
            assert run.usage.model_calls == len(server.requests) == 4
            assert run.usage.tokens_in == 4 * 700


@pytest.mark.namespace
@pytest.mark.slow
def test_batches_with_it_and_without_it_are_compared(namespaces: Path, tmp_path: Path) -> None:
    source = make_benchmark(
        tmp_path / "source", ids=("one",), test_cmd="python3 -m pytest -q -p no:cacheprovider", requirements=[]
    )
    with ScriptedServer(lambda body: says("no", logprobs=[-0.5])) as server:
        for name, flags in (
            ("tests", []),
            ("prm", ["-c", "value.model=openai/prm", "-c", f"model.base_url={server.url}"]),
        ):
            command = ("run", source, "--out", tmp_path / name, "--model", "mutate", "--value", name)
            sandbox = ("-c", "sandbox.kind=namespace", "-c", "sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD='1'}")
            ramify_bench(*command, "--reveal-tests", "--max-nodes", "9", *sandbox, *flags)
            ramify_bench("grade", tmp_path / name, *sandbox)
    assert server.requests
    compared = ramify_bench("compare", tmp_path / "tests", tmp_path / "prm", "--json").stdout
    assert json.loads(compared)["as_run"]["instances"] == 1


def valued(said: Completion) -> Any:
    step = Step((Edit("m.py", "x = 1", "x = 2"),), (Observation("Edited."),))
    return Prm(ScriptedModel([said])).evaluate(case(steps=(step,)))


class TestAnAnswer:
    @pytest.mark.parametrize("text", ["yes", "Yes.\n", "<think>\n\n</think>\n\nyes"])
    def test_is_worth_the_probability_of_yes(self, text: str) -> None:
        assert valued(replace(answer(text), logprobs=(-0.5, -0.25))).parts["prm"] == pytest.approx(exp(-0.75))

    def test_of_another_word_is_no_opinion_and_the_tests_count(self) -> None:
        found = valued(replace(answer("perhaps"), logprobs=(-0.5,)))
        assert (found.value, found.parts["abstained"]) == (by_tests(case()).value, 1)

    def test_without_log_probabilities_is_an_error_that_says_so(self) -> None:
        with pytest.raises(ConfigError, match="the server of scripted gives no log-probabilities"):
            valued(answer("yes"))

    def test_is_not_asked_for_about_a_merge_to_which_no_step_led(self) -> None:
        assert Prm(ScriptedModel([])).evaluate(case()).parts["abstained"] == 1
