"""Conversations that grow longer than the model can read: real requests to a scripted server that refuses long ones."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.actions import Observation, View
from agent.budget import Budget
from agent.engine.components import Components
from agent.errors import TooLong
from agent.evaluate.value.tests import PassingTests
from agent.models.openai import OpenAIModel
from agent.models.retry import Retry
from agent.policy import Position
from agent.policy.chat.conversation import capped
from agent.policy.chat.dialects import NATIVE
from agent.policy.chat.policy import ChatPolicy
from agent.policy.chat.transcript import branch, left_out
from agent.run.run import Run
from agent.run.tree.node import Step
from agent.search.best_of_n import BestOfN
from agent.solver.solve import solve
from sandboxes import Provider, Sandbox
from tests.projects import means, task
from tests.scripted import ScriptedModel, answer
from tests.scripted_server import Reply, ScriptedServer, fails, says
from tests.trees import node

CONTEXT = 12_000
SEEN = Observation("seen " * 800)
"""4,000 bytes."""


@pytest.fixture(scope="module")
def box(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with provider.at(provider.create(task(means(tmp_path_factory.mktemp("all") / "project")).workspace)) as box:
        yield box


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests")


def reads(most_bytes: int) -> Any:
    """A server whose model can read so many bytes, and looks at another place each time."""
    places = itertools.count(1)

    def answer(body: Mapping[str, Any]) -> Reply:
        if len(json.dumps(body["messages"])) > most_bytes:
            return fails(400, "This model's maximum context length is 4096 tokens.", "context_length_exceeded")
        return says("Looking.", ("view", {"path": "means.py", "start": next(places)}))

    return answer


def turns(server: ScriptedServer, box: Sandbox, many: int, *, statement: str = "Wrong.", **options: Any) -> list[Step]:
    """The policy's turns at the root, each of which is shown much."""
    model = OpenAIModel("openai/tiny", base_url=server.url, retry=Retry(sleep=lambda s: None))
    policy, steps = ChatPolicy(model, max_turns_per_node=99, **options), list[Step]()
    given = replace(task(Path("unused")), statement=statement)
    for _ in range(many):
        proposal = policy.propose(Position(given, (node(0),), 0, (), tuple(steps), box), Random(0))
        steps.append(Step(proposal.actions, (SEEN,), proposal.message))
    model.close()
    return steps


def results(request: Mapping[str, Any]) -> list[str]:
    return [m["content"] for m in request["messages"] if m["role"] == "tool"]


@pytest.mark.namespace
class TestAConversation:
    def test_is_left_as_it_is_while_it_fits(self, box: Sandbox) -> None:
        with ScriptedServer(reads(10**6)) as server:
            steps = turns(server, box, 5, context_tokens=200_000)
        assert results(server.requests[-1]) == [SEEN.text] * 4
        assert left_out((node(0),), steps) == 0

    def test_that_is_about_to_be_too_long_loses_its_oldest_results_many_at_once(self, box: Sandbox) -> None:
        with ScriptedServer(reads(CONTEXT * 3)) as server:
            steps = turns(server, box, 20, context_tokens=CONTEXT)
        assert len(server.requests) == 20
        told = [json.dumps(request["messages"])[:-1] for request in server.requests]
        broken = [n for n in range(1, 20) if not told[n].startswith(told[n - 1])]
        assert 2 <= len(broken) <= 5
        last = results(server.requests[-1])
        gone = left_out((node(0),), steps)
        assert len(set(last[:gone])) == 1
        assert last[0].startswith("[4000 bytes of this result are left out, because the conversation has become too")
        assert set(last[gone:]) == {SEEN.text}
        assert last[-1] == SEEN.text

    @pytest.mark.parametrize("context", [None, 1_000_000])
    def test_is_shortened_above_the_soft_cap_whatever_the_model_can_read(
        self, box: Sandbox, context: int | None
    ) -> None:
        cap = 9_000
        with ScriptedServer(reads(10**6)) as server:
            turns(server, box, 20, context_tokens=capped(context, cap))
        sizes = [len(json.dumps([r["messages"], r["tools"]])) / 3 for r in server.requests]
        assert cap * 0.6 < max(sizes) <= cap
        assert results(server.requests[-1])[-1] == SEEN.text

    def test_is_shortened_by_what_the_model_can_read_where_that_is_less_than_the_soft_cap(self) -> None:
        assert capped(CONTEXT, 120_000) == CONTEXT
        assert capped(200_000, 120_000) == 150_000

    def test_that_the_model_refuses_is_shortened_and_sent_again(self, box: Sandbox) -> None:
        with ScriptedServer(reads(30_000)) as server:
            steps = turns(server, box, 12)
        assert len(steps) == 12
        assert 12 < len(server.requests) < 20
        assert 0 < left_out((node(0),), steps) < 11

    def test_keeps_the_results_of_the_last_turn_even_where_there_is_room_for_no_others(self, box: Sandbox) -> None:
        with ScriptedServer(reads(9_000)) as server:
            steps = turns(server, box, 5)
        assert left_out((node(0),), steps) == 3
        assert results(server.requests[-1])[3:] == [SEEN.text]

    def test_reads_back_from_the_record_as_it_was_sent(self, box: Sandbox) -> None:
        with ScriptedServer(reads(30_000)) as server:
            steps = turns(server, box, 12)
        without = left_out((node(0),), steps)
        assert server.requests[-1]["messages"][2:] == branch((node(0),), steps[:-1], NATIVE, without)

    def test_that_cannot_be_shortened_any_more_is_an_error_that_says_so(self, box: Sandbox) -> None:
        with ScriptedServer(reads(10)) as server, pytest.raises(TooLong, match="too long for openai/tiny"):
            turns(server, box, 1)
        assert len(server.requests) == 1

    def test_keeps_short_results(self, box: Sandbox) -> None:
        step = Step((View("a"), View("b")), (Observation("x" * 299), SEEN), "")
        shown = [m["content"] for m in branch((node(0),), (step,), NATIVE, without=1)[1:]]
        assert shown[0] == "x" * 299
        assert shown[1].startswith("[4000 bytes")

    def test_cuts_no_result_for_the_sake_of_a_few_bytes(self, box: Sandbox) -> None:
        def shown(length: int) -> str:
            step = Step((View("a"),), (Observation("word " * (length // 5)),), "")
            return branch((node(0),), (step,), NATIVE, most_bytes=1_000)[-1]["content"]

        assert shown(1_125) == "word " * 225
        assert "bytes left out here" in shown(1_130)

    def test_with_a_model_that_reads_little_holds_the_ends_of_the_issue_and_of_results(self, box: Sandbox) -> None:
        with ScriptedServer(reads(4_000 * 3)) as server:
            turns(server, box, 8, context_tokens=4_000, statement="begin " + "x" * 20_000 + " end")
        assert len(server.requests) == 8
        assert "bytes left out here" in server.requests[0]["messages"][1]["content"]
        assert "bytes left out here" in results(server.requests[-1])[-1]


@pytest.mark.namespace
def test_the_whole_of_a_result_that_was_cut_is_kept_with_the_run(provider: Provider, tmp_path: Path) -> None:
    script = [
        answer("", ("shell", {"command": "seq 1 9999"}), ("shell", {"command": "seq 1 9"})),
        answer("", ("submit", {})),
    ]
    with Run.open(tmp_path / "run") as run:
        parts = Components(
            provider,
            ChatPolicy(ScriptedModel(script)),
            BestOfN(1),
            PassingTests(),
            Budget(max_nodes=2),
            baseline_runs=1,
        )
        solve(task(means(tmp_path / "repo")), parts, run)
    with Run.read(tmp_path / "run") as run:
        long, short = run.tree[1].steps[0].observations
        whole = run.journal.get_blob(long.blob).decode()
    assert whole == "exit code: 0\n" + "\n".join(map(str, range(1, 10_000)))
    assert "to see them, run it with its output cut by head, tail or grep" in long.text
    assert len(long.text) + long.elided_bytes > len(whole)
    assert (short.blob, short.elided_bytes) == ("", 0)
