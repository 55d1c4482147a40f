"""A search with a model that vLLM serves: its calls are parsed, its usage is counted, and its prefix cache is used.

The model's weights are random, so each answer is confined to a few texts (`structured_outputs`), among which it picks.
Reading the calls in them is the server's own work, as it is with any model.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.actions import Edit, RunTests
from agent.analysis.report.summary import as_json, as_text
from agent.build.composition import start
from agent.config import load
from agent.errors import PolicyError
from agent.models.openai import OpenAIModel
from agent.models.pace import pace_of
from agent.models.warming import prompt_of
from agent.run.run import Run
from agent.solver.result import Result
from tests.clients import comes_true
from tests.projects import commit, task
from tests.vllm.conftest import CONTEXT, NAME, Served

pytestmark = [pytest.mark.vllm, pytest.mark.namespace, pytest.mark.timeout(900)]

FILES = {
    "signs.py": "def add(a, b):\n    return a - b\n\n\ndef subtract(a, b):\n    return a + b\n",
    "test_signs.py": (
        "from signs import add, subtract\n\n\ndef test_add():\n    assert add(2, 1) == 3\n\n\n"
        "def test_subtract():\n    assert subtract(2, 1) == 1\n"
    ),
}
"""Two bugs, so that the model has to be asked at least twice on the branch that repairs them."""


def said(*calls: tuple[str, dict[str, Any]]) -> str:
    """An answer that calls tools, as a model of the hermes form writes it."""
    tagged = (json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls)
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in tagged)


def mends(function: str, wrong: str, right: str) -> str:
    head = f"def {function}(a, b):\n    return a "
    return said(("edit", {"path": "signs.py", "old": f"{head}{wrong} b", "new": f"{head}{right} b"}), ("run_tests", {}))


ANSWERS = [mends("add", "-", "+"), mends("subtract", "+", "-")]


@dataclass(frozen=True)
class Search:
    """One run, and by how much the server's own counters went up meanwhile."""

    result: Result
    cached: float
    prompts: float


@pytest.fixture(scope="module", autouse=True)
def key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "none")
        yield


@pytest.fixture(scope="module")
def search(vllm: Served, namespaces: Path, tmp_path_factory: pytest.TempPathFactory) -> Search:
    """The two bugs, repaired by a model that picks one of two edits at random each time."""
    folder = tmp_path_factory.mktemp("search")
    repo = commit(folder / "repo", FILES)
    flags = {
        "policy.name": f"openai/{NAME}",
        "model.base_url": vllm.url,
        "model.temperature": 1.0,
        "model.body": {"structured_outputs": {"choice": ANSWERS}, "max_tokens": 400},
        "search.name": "mcts",
        "sandbox.kind": "namespace",
        "budget.max_nodes": 40,
    }
    before = vllm.counter("vllm:prefix_cache_hits_total"), vllm.counter("vllm:prompt_tokens_total")
    result = start(task(repo, statement="add and subtract are swapped"), load(flags=flags), folder / "run")
    after = vllm.counter("vllm:prefix_cache_hits_total"), vllm.counter("vllm:prompt_tokens_total")
    return Search(result, after[0] - before[0], after[1] - before[1])


class TestASearch:
    def test_repairs_both_bugs(self, search: Search) -> None:
        assert (search.result.status, search.result.verified) == ("solved", True)
        assert search.result.patch.count(b"\n+    return") == 2

    def test_carries_out_the_calls_that_the_server_read(self, search: Search) -> None:
        with Run.open(search.result.run_dir) as run:
            steps = [step for node in run.tree for step in node.steps]
        assert steps
        for step in steps:
            edit, test = step.actions
            assert isinstance(edit, Edit)
            assert isinstance(test, RunTests)

    def test_counts_what_the_server_counted(self, search: Search) -> None:
        usage = search.result.usage
        assert usage.model_calls >= 2
        assert usage.tokens_in == search.prompts
        assert 0 < usage.tokens_out <= 400 * usage.model_calls

    def test_is_served_from_the_prefix_cache_along_the_branch(self, search: Search) -> None:
        usage = search.result.usage
        assert 0 < usage.tokens_cached == search.cached
        with Run.open(search.result.run_dir) as run:
            path = run.tree.path(search.result.best_node)
        second = path[2].steps[0].usage
        assert second.tokens_cached > second.tokens_in / 2

    def test_reports_the_tokens_that_came_from_the_cache(self, search: Search) -> None:
        usage = search.result.usage
        assert as_json(search.result, None)["tokens_cached"] == usage.tokens_cached
        assert f"({usage.tokens_cached} of {usage.tokens_in} prompt tokens were read from a cache)" in as_text(
            search.result, None
        )


def test_siblings_that_differ_in_the_seed_alone_are_two_choices_of_one_request(vllm: Served) -> None:
    """Somebody who asked before them has just been answered: they wait for that, so that they are asked together."""
    model = OpenAIModel(f"openai/{NAME}", base_url=vllm.url, body={"max_tokens": 20}, temperature=1.0)
    talk = [{"role": "user", "content": "a word and another " * 400}]
    ahead = prompt_of(model.name, [], talk, 900.0)
    answered = vllm.counter("vllm:request_success_total")
    with ThreadPoolExecutor(2) as pool:
        with pace_of(vllm.url).turn(time.sleep, prompt=ahead) as turn:
            siblings = [pool.submit(model.complete, talk, seed=seed) for seed in range(2)]
            together = comes_true(lambda: len(pace_of(vllm.url).behind) == 2)
            turn.begun()
        one, other = (sibling.result() for sibling in siblings)
    model.close()
    assert together
    assert one.text != other.text
    assert sorted((one.usage.model_calls, other.usage.model_calls)) == [0, 1]
    assert 20 < (one.usage + other.usage).tokens_out <= 40
    assert vllm.counter("vllm:request_success_total") == answered + 2
    assert pace_of(vllm.url).several


def test_a_conversation_that_is_too_long_is_no_fault_of_the_provider(vllm: Served) -> None:
    model = OpenAIModel(f"openai/{NAME}", base_url=vllm.url, body={"max_tokens": 1})
    with pytest.raises(PolicyError):
        model.complete([{"role": "user", "content": "x y " * 2 * CONTEXT}])
    model.close()
