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
from agent.models import Model
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

    @pytest.mark.slow
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
            together = comes_true(lambda: len(pace_of(server.url).behind) == 2 and len(server.requests) == 1)
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


SONNET = "anthropic/claude-sonnet-4-5"
MARKED = ["You repair.", "The task.", "a file", "What siblings did."]
CALL = {"id": "call_1", "type": "function", "function": {"name": "view", "arguments": "{}"}}
CONVERSATION = [
    {"role": "system", "content": "You repair."},
    {"role": "user", "content": "The task."},
    {"role": "assistant", "content": "Looking.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "a file"},
    {"role": "user", "content": "What siblings did."},
]


THOUGHT = [
    {"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "aGlk"},
]
"""What a Claude model thinks before it says anything, signed."""


def thinks(asked: Mapping[str, Any]) -> Reply:
    """An answer in the form of Anthropic's interface, with thoughts and a call."""
    usage = {"input_tokens": 100, "output_tokens": 50}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "stop_sequence": None}
    call = {"type": "tool_use", "id": "call_1", "name": "view", "input": {"path": "a.py"}}
    whole = {**message, "content": [*THOUGHT, call], "stop_reason": "tool_use", "usage": usage}
    if not asked.get("stream"):
        return Reply(json.dumps(whole).encode())
    thought, hidden = THOUGHT
    parts: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {**thought, "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "Let me "},
                {"type": "thinking_delta", "thinking": "think."},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        (hidden, []),
        ({**call, "input": {}}, [{"type": "input_json_delta", "partial_json": '{"path": "a.py"}'}]),
    ]
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for index, (block, deltas) in enumerate(parts):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    events += [
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
        {"type": "message_stop"},
    ]
    return Reply("".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode())


def claude(asked: Mapping[str, Any], **written: int) -> Reply:
    """An answer in the form of Anthropic's interface. `written`: the tokens that were written to a cache, by how long
    it keeps them."""
    usage: dict[str, Any] = {
        "input_tokens": 100,
        "cache_read_input_tokens": 400,
        "cache_creation_input_tokens": 300,
        "cache_creation": written or {"ephemeral_5m_input_tokens": 300},
    }
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


def marks(request: Mapping[str, Any]) -> dict[str, Any]:
    """What is marked in a request of Anthropic's interface, with its mark."""
    blocks = [*request.get("system", ()), *(block for m in request["messages"] for block in m["content"])]
    found = [block for block in blocks if "cache_control" in block]
    return {block.get("text") or block.get("content"): block["cache_control"] for block in found}


@pytest.mark.filterwarnings("default")
class TestClaude:
    """Through litellm, in the form of Anthropic's interface."""

    def model(
        self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, name: str = SONNET, **settings: Any
    ) -> Model:
        from agent.models.litellm import LiteLLMModel

        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        return LiteLLMModel(name, base_url=server.url.removesuffix("/v1"), retry=Clock().retry(), **settings)

    @pytest.mark.parametrize("stream", [True, False])
    def test_is_told_what_to_cache_and_costs_what_that_costs(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        server = serve(claude)
        completion = self.model(server, monkeypatch, stream=stream).complete(CONVERSATION, TOOLS)
        assert marks(server.requests[0]) == {text: {"type": "ephemeral"} for text in MARKED}
        assert (completion.text, completion.usage.tokens_cached, completion.usage.unpriced_calls) == ("Yes.", 400, 0)
        assert (completion.usage.tokens_in, completion.usage.tokens_out) == (100 + 400 + 300, 50)
        assert completion.usage.cost_usd == pytest.approx((100 * 3 + 400 * 0.3 + 300 * 3.75 + 50 * 15) / 1e6)

    def test_keeps_what_is_cached_for_an_hour_where_it_is_asked_to(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server = serve(lambda asked: claude(asked, ephemeral_1h_input_tokens=300))
        completion = self.model(server, monkeypatch, cache_ttl=lambda: "1h").complete(CONVERSATION, TOOLS)
        assert marks(server.requests[0]) == {text: {"type": "ephemeral", "ttl": "1h"} for text in MARKED}
        assert completion.usage.cost_usd == pytest.approx((100 * 3 + 400 * 0.3 + 300 * 6 + 50 * 15) / 1e6)

    def test_keeps_nothing_of_a_question_by_itself(self, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
        server = serve(claude)
        self.model(server, monkeypatch).complete(CONVERSATION[:2])
        assert marks(server.requests[0]) == {}

    @pytest.mark.parametrize("stream", [True, False])
    def test_gets_its_thoughts_back_unchanged(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        server = serve(thinks)
        model = self.model(server, monkeypatch, stream=stream, thinking_tokens=2048, temperature=0.3)
        message = json.loads(json.dumps(model.complete(HELLO, TOOLS, seed=1).message))
        model.complete([*HELLO, message, CONVERSATION[3]], TOOLS)
        first, second = server.requests
        assert first["thinking"] == {"type": "enabled", "budget_tokens": 2048}
        assert first["max_tokens"] > 2048
        assert "temperature" not in first
        assert second["messages"][1]["content"][:2] == THOUGHT
        assert message.keys() == {
            "role",
            "content",
            "tool_calls",
            "thinking_blocks",
            "reasoning_content",
            "reasoning_by",
        }

    def test_is_not_given_the_thoughts_of_another_model(self, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
        server = serve(thinks)
        message = self.model(server, monkeypatch, thinking_tokens=2048).complete(HELLO, TOOLS).message
        self.model(server, monkeypatch, "anthropic/claude-opus-4-6").complete([*HELLO, message, CONVERSATION[3]], TOOLS)
        kinds = {block["type"] for block in server.requests[1]["messages"][1]["content"]}
        assert kinds <= {"text", "tool_use"}

    @pytest.mark.parametrize(
        ("name", "settings", "asked"),
        [
            (SONNET, {"reasoning_effort": "none"}, {}),
            (SONNET, {"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
            (
                SONNET,
                {"reasoning_effort": "high", "thinking_tokens": 3000},
                {"thinking": {"type": "enabled", "budget_tokens": 3000}},
            ),
            (
                "anthropic/claude-opus-4-6",
                {"reasoning_effort": "low"},
                {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
            ),
        ],
    )
    def test_thinks_as_much_as_the_settings_say(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str, settings: dict[str, Any], asked: dict[str, Any]
    ) -> None:
        server = serve(thinks)
        self.model(server, monkeypatch, name, **settings).complete(HELLO, TOOLS)
        given = server.requests[0]
        assert {key: given[key] for key in ("thinking", "output_config") if key in given} == asked


@pytest.mark.filterwarnings("default")
def test_a_model_that_is_not_known_to_reason_is_asked_without_and_that_is_said(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from agent.models.litellm import LiteLLMModel

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve([says("x")])
    model = LiteLLMModel("openai/gpt-4o", base_url=server.url, reasoning_effort="high", thinking_tokens=2048)
    model.complete(HELLO, TOOLS)
    assert not {"reasoning_effort", "thinking", "thinking_tokens"} & server.requests[0].keys()
    assert "not known to reason" in caplog.text


@pytest.mark.filterwarnings("default")
def test_nothing_is_marked_for_other_providers(serve: Serve) -> None:
    from agent.models.litellm import LiteLLMModel

    server = serve([says("x")])
    LiteLLMModel("hosted_vllm/claude-like", base_url=server.url, retry=Clock().retry()).complete(CONVERSATION)
    assert server.requests[0]["messages"] == CONVERSATION
