"""Hosted providers, through litellm, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agent.budget import Usage
from agent.errors import ConfigError, ModelError, PolicyError, Stopped
from agent.models import Completion, Model
from agent.models.deadlines import Deadlines
from agent.models.halt import Halt
from agent.models.pace import pace_of
from agent.models.registry import make
from tests.clients import HELLO, KEY, TOOLS, Clock, Serve, comes_true
from tests.scripted_server import Reply, ScriptedServer, choices, fails, says


@pytest.mark.filterwarnings("default")
class TestHostedProviders:
    """Through litellm, with a provider prefix that takes an address, so that the test server can be one."""

    def model(self, server: ScriptedServer, name: str = "hosted_vllm/tiny", **settings: Any) -> Model:
        from agent.models.litellm import LiteLLMModel

        return LiteLLMModel(name, base_url=server.url, **{"retry": Clock().retry(), **settings})

    def test_answer_with_text_calls_and_reasoning(self, serve: Serve) -> None:
        model = self.model(serve([says("Looking.", ("view", {"path": "a.py"}), cached=400, reasoning_content="hm")]))
        completion = model.complete(HELLO, TOOLS)
        assert (completion.text, completion.tool_calls[0].arguments) == ("Looking.", '{"path": "a.py"}')
        assert completion.raw["reasoning_content"] == "hm"
        assert (completion.usage.tokens_in, completion.usage.tokens_cached) == (1000, 400)
        assert (completion.usage.cost_usd, completion.usage.unpriced_calls) == (0.0, 1)

    @pytest.mark.parametrize("name", ["hosted_vllm/tiny", "openai/tiny"])
    def test_are_tried_again_by_our_own_layer_alone(self, serve: Serve, name: str) -> None:
        server = serve([fails(429, retry_after="20"), fails(500), says("at last")])
        clock = Clock()
        assert self.model(server, name, retry=clock.retry()).complete(HELLO).text == "at last"
        assert len(server.requests) == 3
        assert len(clock.asked) == 2
        assert clock.asked[0] >= 20

    def test_give_siblings_that_differ_in_the_seed_alone_the_choices_of_one_request(self, serve: Serve) -> None:
        begin = threading.Event()
        two = choices(says("b", ("view", {"path": "a.py"})), says("c"))
        server = serve(lambda body: says("a").waits(begin, 1) if len(server.requests) == 1 else two)
        model = self.model(server, price=(2.0, 10.0))
        talk = [{"role": "user", "content": "word " * 1000}]
        with ThreadPoolExecutor(3) as pool:
            answers = [pool.submit(model.complete, talk, seed=seed) for seed in range(3)]
            together = comes_true(lambda: pace_of(server.url).behind == 2 and len(server.requests) == 1)
            begin.set()
        assert together
        assert [(request.get("n"), request.get("stream")) for request in server.requests] == [(None, True), (2, None)]
        found = sorted((answer.result() for answer in answers), key=lambda each: each.text)
        assert [(each.text, len(each.tool_calls)) for each in found] == [("a", 0), ("b", 1), ("c", 0)]
        assert sum((each.usage for each in found), Usage()) == Usage(2, 2000, 300, cost_usd=pytest.approx(0.007))

    def test_refuse_a_key_or_a_model_for_good(self, serve: Serve) -> None:
        server = serve([fails(401, f"bad key {KEY}"), fails(404, "no such model")])
        with pytest.raises(ModelError, match="refuses the key") as caught:
            self.model(server).complete(HELLO)
        assert KEY not in str(caught.value)
        with pytest.raises(ConfigError, match="no such model"):
            self.model(server).complete(HELLO)
        assert len(server.requests) == 2

    def test_say_when_a_conversation_is_too_long_or_the_credit_used_up(self, serve: Serve) -> None:
        model = self.model(
            serve(
                [
                    fails(400, "This model's maximum context length is 4096 tokens."),
                    fails(429, "You exceeded your current quota", code="insufficient_quota"),
                ]
            )
        )
        with pytest.raises(PolicyError, match="too long"):
            model.complete(HELLO)
        with pytest.raises(ModelError, match="no credit"):
            model.complete(HELLO)

    def test_have_a_known_price_where_litellm_knows_it(self, serve: Serve) -> None:
        usage = self.model(serve([says("x")]), "openai/gpt-4o-mini").complete(HELLO).usage
        assert usage.cost_usd > 0
        assert usage.unpriced_calls == 0

    def test_whose_stream_is_cut_off_are_asked_again(self, serve: Serve) -> None:
        cut = says("a long answer that is cut off").fails("cut", 4)
        completion = self.model(serve([cut, says("at last")])).complete(HELLO)
        assert completion.text == "at last"
        assert completion.usage.model_calls == 2

    @pytest.mark.parametrize("after", [0, 4])
    def test_that_fall_silent_are_given_up_in_time(self, serve: Serve, after: int) -> None:
        deadlines = Deadlines(first_token_s=0.3, idle_s=0.2)
        silent = says("a long answer").fails("stall", after)
        with pytest.raises(ModelError, match=r"model\.(first_token|idle)_s"):
            self.model(serve([silent]), deadlines=deadlines, retry=Clock().retry(attempts=1)).complete(HELLO)

    @pytest.mark.parametrize("after", [0, 4])
    @pytest.mark.parametrize("name", ["hosted_vllm/tiny", "openai/tiny", "anthropic/claude-sonnet-4-5"])
    def test_whose_answer_nobody_waits_for_any_more_are_hung_up_on(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str, after: int
    ) -> None:
        """Their connection may be silent for an hour, and may be one that was used before."""
        from agent.models.litellm import LiteLLMModel

        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        halt = Halt()

        def answers(asked: Mapping[str, Any]) -> Reply:
            whole = claude(asked) if name.startswith("anthropic") else says("a long answer")
            if len(server.requests) == 1:
                return whole
            halt.cancel.set()
            return whole.fails("stall", after)

        server = serve(answers)
        url = server.url.removesuffix("/v1") if name.startswith("anthropic") else server.url
        patient = Deadlines(first_token_s=3600, idle_s=3600, total_s=3600)
        model = LiteLLMModel(name, base_url=url, deadlines=patient, halt=halt)
        model.complete(HELLO)
        with pytest.raises(Stopped):
            model.complete(HELLO)
        readers = [thread for thread in threading.enumerate() if thread.name == "ramify-answer"]
        for reader in readers:
            reader.join(100)
        assert not any(reader.is_alive() for reader in readers)

    def test_go_on_over_one_connection(self, serve: Serve) -> None:
        server = serve([says("Yes.")] * 3)
        model = self.model(server)
        for _ in range(3):
            model.complete(HELLO)
        assert len(set(server.connections)) == 1

    def test_that_do_not_exist_are_a_wrong_setting(self) -> None:
        with pytest.raises(ConfigError, match="openai/Qwen/Qwen3"):
            make("Qwen/Qwen3")

    def test_without_their_key_name_its_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
            make("anthropic/claude-x")


CALL = {"id": "call_1", "type": "function", "function": {"name": "view", "arguments": "{}"}}
CONVERSATION = [
    {"role": "system", "content": "You repair."},
    {"role": "user", "content": "The task."},
    {"role": "assistant", "content": "Looking.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "a file"},
    {"role": "user", "content": "What siblings did."},
]


def claude(asked: Mapping[str, Any]) -> Reply:
    """An answer in the form of Anthropic's interface."""
    usage = {"input_tokens": 100, "cache_read_input_tokens": 400, "cache_creation_input_tokens": 300}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None}
    said = {"type": "text", "text": "Yes."}
    whole = {**message, "content": [said], "stop_reason": "end_turn", "usage": {**usage, "output_tokens": 50}}
    if not asked.get("stream"):
        return Reply(json.dumps(whole).encode())
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events = (
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Yes."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 50}},
        {"type": "message_stop"},
    )
    return Reply("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode())


@pytest.mark.filterwarnings("default")
class TestClaude:
    """Through litellm, in the form of Anthropic's interface."""

    def ask(self, serve: Serve, monkeypatch: pytest.MonkeyPatch, *, stream: bool) -> tuple[Completion, dict[str, Any]]:
        from agent.models.litellm import LiteLLMModel

        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        server = serve(claude)
        base_url = server.url.removesuffix("/v1")
        model = LiteLLMModel("anthropic/claude-sonnet-4-5", base_url=base_url, retry=Clock().retry(), stream=stream)
        return model.complete(CONVERSATION, TOOLS), server.requests[0]

    @pytest.mark.parametrize("stream", [True, False])
    def test_is_told_what_to_cache_and_costs_what_that_costs(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        completion, request = self.ask(serve, monkeypatch, stream=stream)
        blocks = [*request["system"], *(block for message in request["messages"] for block in message["content"])]
        marked = [block.get("text") or block.get("content") for block in blocks if "cache_control" in block]
        assert marked == ["You repair.", "The task.", "a file", "What siblings did."]
        assert (completion.text, completion.usage.tokens_cached, completion.usage.unpriced_calls) == ("Yes.", 400, 0)
        assert (completion.usage.tokens_in, completion.usage.tokens_out) == (100 + 400 + 300, 50)
        assert completion.usage.cost_usd == pytest.approx((100 * 3 + 400 * 0.3 + 300 * 3.75 + 50 * 15) / 1e6)


@pytest.mark.filterwarnings("default")
def test_nothing_is_marked_for_other_providers(serve: Serve) -> None:
    from agent.models.litellm import LiteLLMModel

    server = serve([says("x")])
    LiteLLMModel("hosted_vllm/claude-like", base_url=server.url, retry=Clock().retry()).complete(CONVERSATION)
    assert server.requests[0]["messages"] == CONVERSATION
