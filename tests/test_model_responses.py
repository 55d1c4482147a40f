"""Models that are spoken to by the Responses interface, over real HTTP: their reasoning goes back to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.budget import Budget
from agent.engine.components import Components
from agent.errors import ConfigError, ModelError, TooLong
from agent.evaluate.value.tests import PassingTests
from agent.models import Model
from agent.models.abilities import reasons
from agent.models.litellm import LiteLLMModel
from agent.models.openai import OpenAIModel
from agent.models.registry import make
from agent.models.responses import ResponsesModel
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.search.linear import Linear
from agent.solver.solve import solve
from sandboxes import Provider
from tests.clients import HELLO, KEY, TOOLS, Clock, Serve
from tests.projects import BUG, FIX, means, task
from tests.scripted_server import Reply, ScriptedServer, called, fails, reasoned, responds, says, worded

LOOK = (reasoned("rs_1", "gAAAA1"), worded("Looking."), called("view", "call_a", {"path": "means.py"}))
Speak = Callable[..., Model]


@pytest.fixture
def speak(monkeypatch: pytest.MonkeyPatch) -> Iterator[Speak]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made: list[Model] = []

    def speak(server: ScriptedServer, **settings: Any) -> Model:
        given = {"retry": Clock().retry(), **settings}
        made.append(make("openai/tiny", api="responses", base_url=server.url, **given))
        return made[-1]

    yield speak
    for model in made:
        model.close()


class TestAnAnswer:
    @pytest.mark.parametrize("stream", [True, False])
    def test_carries_text_calls_and_what_they_cost(self, serve: Serve, speak: Speak, stream: bool) -> None:
        server = serve([responds(*LOOK, cached=400)])
        completion = speak(server, stream=stream, price=(2.0, 10.0, 0.5)).complete(HELLO, TOOLS, seed=7)
        assert completion.text == "Looking."
        assert [(c.id, c.name, c.arguments) for c in completion.tool_calls] == [
            ("call_a", "view", '{"path": "means.py"}')
        ]
        assert (completion.finish_reason, completion.usage.tokens_in, completion.usage.tokens_out) == (
            "tool_calls",
            1000,
            100,
        )
        assert completion.usage.tokens_cached == 400
        assert completion.usage.cost_usd == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 10.0) / 1e6)
        assert server.requests[0].get("stream", False) is stream

    def test_goes_back_as_it_came_with_its_reasoning(self, serve: Serve, speak: Speak) -> None:
        server = serve([responds(*LOOK), responds(worded("Done."))])
        model = speak(server)
        first = model.complete(HELLO, TOOLS)
        result = {"role": "tool", "tool_call_id": "call_a", "content": "a file"}
        stored = json.loads(json.dumps(first.message))
        assert model.complete([*HELLO, stored, result], TOOLS).text == "Done."
        reasoning = {key: value for key, value in LOOK[0].items() if key != "status"}
        output = {"type": "function_call_output", "call_id": "call_a", "output": "a file"}
        assert server.requests[1]["input"] == [*HELLO, reasoning, *LOOK[1:], output]

    def test_of_another_model_goes_back_as_its_words_and_calls(self, serve: Serve, speak: Speak) -> None:
        server = serve([responds(worded("Done."))])
        call = {"id": "call_1", "type": "function", "function": {"name": "view", "arguments": "{}"}}
        other = {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [call],
            "response_items": [reasoned("rs_9", "of another")],
            "reasoning_by": "openai/another",
        }
        result = {"role": "tool", "tool_call_id": "call_1", "content": "a file"}
        speak(server).complete([*HELLO, other, result], TOOLS)
        assert server.requests[0]["input"][1:] == [
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "call_1", "name": "view", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "a file"},
        ]

    def test_whose_arguments_cannot_be_read_goes_back_with_those_that_replace_them(
        self, serve: Serve, speak: Speak
    ) -> None:
        server = serve(
            [responds(reasoned("rs_1", "x"), called("view", "call_a", "{broken")), responds(worded("Done."))]
        )
        model = speak(server)
        message = model.complete(HELLO, TOOLS).message
        message["tool_calls"][0]["function"]["arguments"] = "{}"
        model.complete([*HELLO, message, {"role": "tool", "tool_call_id": "call_a", "content": "Error"}], TOOLS)
        assert server.requests[1]["input"][2]["arguments"] == "{}"

    def test_that_was_cut_off_says_so(self, serve: Serve, speak: Speak) -> None:
        model = speak(serve([responds(worded("I w"), cut_off="max_output_tokens")]))
        assert model.complete(HELLO).finish_reason == "length"

    def test_is_asked_for_with_the_settings_of_the_model_and_of_the_call(self, serve: Serve, speak: Speak) -> None:
        server = serve([responds(worded("x"))])
        model = speak(server, reasoning_effort="high", temperature=0.5, body={"max_tokens": 9})
        model.complete(HELLO, TOOLS, seed=7)
        assert server.requests == [
            {
                "model": "tiny",
                "input": HELLO,
                "tools": [{"type": "function", "strict": False, **TOOLS[0]["function"]}],
                "store": False,
                "include": ["reasoning.encrypted_content"],
                "reasoning": {"effort": "high"},
                "max_output_tokens": 9,
                "stream": True,
            }
        ]
        assert model.sampling({"seed": 7}) == {
            "temperature": 0.5,
            "reasoning_effort": "high",
            "max_tokens": 9,
            "seed": 7,
        }


class TestAFailure:
    def test_that_may_pass_is_tried_again(self, serve: Serve, speak: Speak) -> None:
        broken = {"code": "server_error", "message": "try again"}
        failed = responds(status="failed", error=broken)
        server = serve([fails(500), failed, responds(*LOOK).fails("cut", 4), Reply(b"{}"), responds(worded("at last"))])
        assert speak(server).complete(HELLO).text == "at last"
        assert len(server.requests) == 5

    def test_that_does_not_pass_is_told_for_what_it_is(self, serve: Serve, speak: Speak) -> None:
        long = responds(status="failed", error={"code": "context_length_exceeded", "message": "Your input exceeds"})
        bad = responds(status="failed", error={"code": "invalid_prompt", "message": "flagged"})
        model = speak(serve([long, bad, fails(401)]))
        with pytest.raises(TooLong):
            model.complete(HELLO)
        with pytest.raises(ModelError, match="flagged"):
            model.complete(HELLO)
        with pytest.raises(ModelError, match="refuses the key"):
            model.complete(HELLO)

    def test_of_a_silent_server_ends_by_the_patience_for_a_first_token(self, serve: Serve, speak: Speak) -> None:
        """A model that reasons says nothing for a while in the middle of an answer."""
        silent = responds(*LOOK).fails("stall", 4)
        once = Clock().retry(attempts=1)
        with pytest.raises(ModelError, match=r"stopped for 0\.3 s"):
            speak(serve([silent]), first_token_s=0.3, idle_s=0.01, retry=once).complete(HELLO)


@pytest.mark.filterwarnings("default")
class TestTheInterface:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("openai/gpt-5", ResponsesModel),
            ("openai/o3", ResponsesModel),
            ("openai/gpt-5-codex", ResponsesModel),
            ("openai/gpt-9-not-listed", ResponsesModel),
            ("openai/gpt-4o", LiteLLMModel),
        ],
    )
    def test_is_chosen_by_what_is_known_of_the_model(
        self, monkeypatch: pytest.MonkeyPatch, name: str, kind: type
    ) -> None:
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        model = make(name)
        assert isinstance(model, kind)
        assert (model.price is None) == (not name.startswith("openai/gpt-4o") and "not-listed" in name)
        model.close()

    def test_is_chat_for_a_server_of_ones_own_unless_it_is_asked_for(self, serve: Serve, speak: Speak) -> None:
        server = serve([says("x"), responds(worded("y"))])
        chat = make("openai/gpt-5", base_url=server.url)
        assert isinstance(chat, OpenAIModel)
        assert chat.complete(HELLO).text == "x"
        assert speak(server).complete(HELLO).text == "y"
        chat.close()

    def test_can_be_chosen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert isinstance(make("openai/gpt-5", api="chat"), LiteLLMModel)
        with pytest.raises(ConfigError, match="works for openai/NAME"):
            make("anthropic/claude-sonnet-4-5", api="responses")

    def test_is_no_matter_of_names_that_only_look_alike(self) -> None:
        assert not reasons("gpt-4o")
        assert not reasons("gpt-9-chat")
        assert not reasons("omni-moderation-9")


@pytest.mark.slow
@pytest.mark.namespace
def test_a_resumed_run_sends_the_reasoning_of_earlier_turns_unchanged(
    provider: Provider, tmp_path: Path, serve: Serve, speak: Speak
) -> None:
    edit = called("edit", "call_b", {"path": "means.py", "old": BUG, "new": FIX})
    right = (reasoned("rs_2", "gAAAA2"), edit, called("run_tests", "call_c", {}))
    server = serve([responds(*LOOK), fails(401), responds(*right)])
    wanted = task(means(tmp_path / "repo"))

    def sit() -> Any:
        with Run.open(tmp_path / "run") as run:
            parts = Components(
                provider, ChatPolicy(speak(server)), Linear(), PassingTests(), Budget(max_nodes=5), baseline_runs=1
            )
            return solve(wanted, parts, run)

    assert "refuses the key" in str(sit().error)
    assert sit().status == "solved"
    broken_off, gone_on_with = (json.dumps(request) for request in server.requests[1:3])
    assert broken_off == gone_on_with
    assert "gAAAA1" in gone_on_with
