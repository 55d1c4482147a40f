"""A model's answers, its bill and its name, over real HTTP."""

from __future__ import annotations

import pytest

from agent.analysis.report.summary import cost
from agent.budget import Usage
from agent.errors import ConfigError, ModelError
from agent.models.openai import OpenAIModel
from agent.models.prices import Price
from agent.models.registry import make
from tests.clients import HELLO, KEY, TOOLS, Client, Serve
from tests.scripted import ScriptedModel, answer
from tests.scripted_server import Reply, says


class TestAnAnswer:
    def test_carries_text_and_calls_as_the_model_wrote_them(self, serve: Serve, client: Client) -> None:
        model = client(serve([says("Looking.", ("view", {"path": "a.py"}), ("shell", "{broken"))]))
        completion = model.complete(HELLO, TOOLS)
        assert completion.text == "Looking."
        assert [(c.name, c.arguments) for c in completion.tool_calls] == [
            ("view", '{"path": "a.py"}'),
            ("shell", "{broken"),
        ]

    def test_can_be_sent_back_with_its_reasoning_and_without_empty_fields(self, serve: Serve, client: Client) -> None:
        model = client(serve([says(None, ("view", {"path": "a"}), reasoning_content="hm")]))
        raw = model.complete(HELLO, TOOLS).raw
        assert raw["reasoning_content"] == "hm"
        assert raw.keys() == {"role", "content", "tool_calls", "reasoning_content"}

    def test_gives_every_call_an_id_and_text_for_arguments(self, serve: Serve, client: Client) -> None:
        call = '{"function": {"name": "view", "arguments": {"path": "a"}}}'
        body = f'{{"choices": [{{"message": {{"role": "assistant", "tool_calls": [{call}, {call}]}}}}]}}'
        completion = client(serve([Reply(body.encode())])).complete(HELLO)
        assert [(c.id, c.arguments) for c in completion.tool_calls] == [
            ("call_0", '{"path": "a"}'),
            ("call_1", '{"path": "a"}'),
        ]
        assert [c["id"] for c in completion.raw["tool_calls"]] == ["call_0", "call_1"]

    def test_can_be_stored_even_when_it_holds_half_a_character(self, serve: Serve, client: Client) -> None:
        completion = client(serve([says("half: \ud83d")])).complete(HELLO)
        assert completion.text.encode() == b"half: ?"

    def test_is_asked_for_with_the_settings_of_the_model_and_of_the_call(self, serve: Serve, client: Client) -> None:
        server = serve([says("x")])
        client(server, temperature=0.5, body={"tool_choice": "required"}).complete(HELLO, TOOLS, seed=7)
        assert server.requests == [
            {
                "model": "tiny",
                "messages": HELLO,
                "tools": TOOLS,
                "temperature": 0.5,
                "tool_choice": "required",
                "seed": 7,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ]
        assert server.keys == [f"Bearer {KEY}"]


def test_an_effort_is_asked_for_by_the_name_that_servers_know(serve: Serve, client: Client) -> None:
    server = serve([says("x")])
    model = client(server, reasoning_effort="low", thinking_tokens=2048)
    model.complete(HELLO)
    assert server.requests[0]["reasoning_effort"] == "low"
    assert "thinking_tokens" not in server.requests[0]
    assert model.sampling({}) == {"reasoning_effort": "low", "thinking_tokens": 2048}


def test_signed_reasoning_goes_to_nobody_else(serve: Serve, client: Client) -> None:
    server = serve([says("x")])
    said = {"role": "assistant", "content": "a", "thinking_blocks": [{}], "reasoning_by": "anthropic/claude-x"}
    client(server).complete([*HELLO, {**said, "reasoning_content": "hm"}, *HELLO])
    assert server.requests[0]["messages"][1] == {"role": "assistant", "content": "a", "reasoning_content": "hm"}


def test_a_call_goes_before_the_temperature_of_the_settings_and_their_fields_before_all(
    serve: Serve, client: Client
) -> None:
    server = serve([says("x")])
    model = client(server, temperature=0.5, body={"max_tokens": 9})
    asked = model.sampling({"temperature": 1.0, "max_tokens": 99, "seed": 7})
    assert asked == {"temperature": 1.0, "max_tokens": 9, "seed": 7}
    model.complete(HELLO, **asked)
    assert asked.items() <= server.requests[0].items()


class TestTheBill:
    def test_counts_tokens_cached_ones_too(self, serve: Serve, client: Client) -> None:
        usage = client(serve([says("x", cached=400)])).complete(HELLO).usage
        assert (usage.model_calls, usage.tokens_in, usage.tokens_out, usage.tokens_cached) == (1, 1000, 100, 400)

    def test_tells_people_how_much_came_from_a_cache(self) -> None:
        said = cost(Usage(model_calls=1, tokens_in=1000, tokens_out=100, tokens_cached=400, cost_usd=0.5))
        assert said == ", 1 model call, 1100 tokens (400 of 1000 prompt tokens were read from a cache), 0.5000 dollars"

    def test_is_unknown_without_a_price(self, serve: Serve, client: Client) -> None:
        usage = client(serve([says("x")])).complete(HELLO).usage
        assert (usage.cost_usd, usage.unpriced_calls) == (0.0, 1)

    def test_follows_the_price_that_was_given(self, serve: Serve, client: Client) -> None:
        model = client(serve([says("x", cached=400)]), price=(2.0, 10.0, 0.5))
        usage = model.complete(HELLO).usage
        assert usage.cost_usd == pytest.approx((600 * 2.0 + 100 * 10.0 + 400 * 0.5) / 1e6)
        assert usage.unpriced_calls == 0

    def test_knows_what_writing_to_a_cache_costs(self) -> None:
        counts = {"prompt_tokens": 1000, "completion_tokens": 100, "cache_creation_input_tokens": 300}
        given = Price(2.0, 10.0, 0.5, 2.5)
        assert given.of(counts) == pytest.approx((700 * 2.0 + 300 * 2.5 + 100 * 10.0) / 1e6)
        assert Price(2.0, 10.0).of(counts) == pytest.approx((1000 * 2.0 + 100 * 10.0) / 1e6)

    def test_is_unknown_when_the_server_counts_nothing(self, serve: Serve, client: Client) -> None:
        usage = client(serve([says("x", usage=False)]), price=(2.0, 10.0, 0.5)).complete(HELLO).usage
        assert (usage.model_calls, usage.unpriced_calls) == (1, 1)


class TestAName:
    def test_needs_a_provider(self) -> None:
        with pytest.raises(ConfigError, match="openai/gpt-x"):
            make("gpt-x")

    def test_of_a_server_of_ones_own_goes_there_without_litellm(self, serve: Serve) -> None:
        server = serve([says("x")])
        model = make("openai/org/tiny", base_url=server.url, price=None, temperature=None)
        assert isinstance(model, OpenAIModel)
        assert model.complete(HELLO).text == "x"
        assert server.requests[0]["model"] == "org/tiny"
        assert model.name == "openai/org/tiny"
        model.close()

    def test_without_a_key_names_the_variable_to_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
            make("openai/tiny")

    def test_a_server_of_ones_own_needs_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        assert make("openai/tiny", base_url="http://127.0.0.1:1/v1").name == "openai/tiny"

    def test_with_an_address_that_is_none_is_refused(self, serve: Serve) -> None:
        with pytest.raises(ConfigError, match="localhost:8000"):
            make("openai/tiny", base_url="localhost:8000")


class TestAScriptedModel:
    def test_gives_its_answers_in_order_and_then_fails(self) -> None:
        model = ScriptedModel([answer("one"), answer("two", ("view", {"path": "a"}))])
        assert model.complete(HELLO).text == "one"
        assert model.complete(HELLO).tool_calls[0].name == "view"
        with pytest.raises(ModelError, match="after 2 answers"):
            model.complete(HELLO)

    def test_can_be_a_function_of_the_conversation(self) -> None:
        model = ScriptedModel(lambda messages: answer(str(messages[-1]["content"]).upper()))
        assert model.complete(HELLO).text == "HELLO"
        assert model.heard == [tuple(HELLO)]
