"""A model's answers, its failures and its bill, over real HTTP."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from email.utils import formatdate
from random import Random
from typing import Any

import pytest

from agent.errors import ConfigError, ModelError, PolicyError
from agent.models import Model
from agent.models.openai import OpenAIModel
from agent.models.registry import make
from agent.models.retry import Retry, wait_asked_for
from agent.models.scripted import ScriptedModel, answer
from tests.scripted_server import Reply, Script, ScriptedServer, fails, says

KEY = "sk-secret-of-the-tests"
HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "view", "description": "", "parameters": {"type": "object"}}}]

Serve = Callable[[Script], ScriptedServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    running: list[ScriptedServer] = []

    def start(script: Script) -> ScriptedServer:
        running.append(ScriptedServer(script).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.__exit__()


class Waits:
    """A clock that does not wait but remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def retry(self, **settings: Any) -> Retry:
        return Retry(sleep=self.asked.append, rng=Random(0), **settings)


MODELS: list[OpenAIModel] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while MODELS:
        MODELS.pop().close()


def openai_model(server: ScriptedServer, **settings: Any) -> OpenAIModel:
    MODELS.append(OpenAIModel("openai/tiny", base_url=server.url, **{"retry": Waits().retry(), **settings}))
    return MODELS[-1]


class TestAnAnswer:
    def test_carries_text_and_calls_as_the_model_wrote_them(self, serve: Serve) -> None:
        model = openai_model(serve([says("Looking.", ("view", {"path": "a.py"}), ("shell", "{broken"))]))
        completion = model.complete(HELLO, TOOLS)
        assert completion.text == "Looking."
        assert [(c.name, c.arguments) for c in completion.tool_calls] == [
            ("view", '{"path": "a.py"}'),
            ("shell", "{broken"),
        ]

    def test_can_be_sent_back_with_its_reasoning_and_without_empty_fields(self, serve: Serve) -> None:
        model = openai_model(serve([says(None, ("view", {"path": "a"}), reasoning_content="hm")]))
        raw = model.complete(HELLO, TOOLS).raw
        assert raw["reasoning_content"] == "hm"
        assert raw.keys() == {"role", "content", "tool_calls", "reasoning_content"}

    def test_gives_every_call_an_id_and_text_for_arguments(self, serve: Serve) -> None:
        call = '{"function": {"name": "view", "arguments": {"path": "a"}}}'
        body = f'{{"choices": [{{"message": {{"role": "assistant", "tool_calls": [{call}, {call}]}}}}]}}'
        completion = openai_model(serve([Reply(body.encode())])).complete(HELLO)
        assert [(c.id, c.arguments) for c in completion.tool_calls] == [
            ("call_0", '{"path": "a"}'),
            ("call_1", '{"path": "a"}'),
        ]
        assert [c["id"] for c in completion.raw["tool_calls"]] == ["call_0", "call_1"]

    def test_can_be_stored_even_when_it_holds_half_a_character(self, serve: Serve) -> None:
        completion = openai_model(serve([says("half: \ud83d")])).complete(HELLO)
        assert completion.text.encode() == b"half: ?"

    def test_is_asked_for_with_the_settings_of_the_model_and_of_the_call(self, serve: Serve) -> None:
        server = serve([says("x")])
        openai_model(server, temperature=0.5).complete(HELLO, TOOLS, seed=7)
        assert server.requests == [{"model": "tiny", "messages": HELLO, "tools": TOOLS, "temperature": 0.5, "seed": 7}]
        assert server.keys == [f"Bearer {KEY}"]


class TestTheBill:
    def test_counts_tokens_cached_ones_too(self, serve: Serve) -> None:
        usage = openai_model(serve([says("x", cached=400)])).complete(HELLO).usage
        assert (usage.model_calls, usage.tokens_in, usage.tokens_out, usage.tokens_cached) == (1, 1000, 100, 400)

    def test_is_unknown_without_a_price(self, serve: Serve) -> None:
        usage = openai_model(serve([says("x")])).complete(HELLO).usage
        assert (usage.cost_usd, usage.unpriced_calls) == (0.0, 1)

    def test_follows_the_price_that_was_given(self, serve: Serve) -> None:
        model = openai_model(serve([says("x", cached=400)]), price=(2.0, 10.0, 0.5))
        usage = model.complete(HELLO).usage
        assert usage.cost_usd == pytest.approx((600 * 2.0 + 100 * 10.0 + 400 * 0.5) / 1e6)
        assert usage.unpriced_calls == 0

    def test_is_unknown_when_the_server_counts_nothing(self, serve: Serve) -> None:
        usage = openai_model(serve([says("x", usage=False)]), price=(2.0, 10.0, 0.5)).complete(HELLO).usage
        assert (usage.model_calls, usage.unpriced_calls) == (1, 1)


class TestAFailureThatMayPass:
    @pytest.mark.parametrize(
        "fault",
        [
            fails(408),
            fails(409),
            fails(429),
            fails(500),
            fails(503),
            Reply(b"<html>Bad gateway</html>", 502),
            Reply(b"{not json"),
            Reply(b'{"choices": []}'),
            Reply(b'{"error": {"message": "overloaded"}}'),
            Reply(b"null"),
        ],
        ids=lambda reply: f"{reply.status} {reply.body[:12]!r}",
    )
    def test_is_tried_again(self, serve: Serve, fault: Reply) -> None:
        server = serve([fault, fault, says("at last")])
        assert openai_model(server).complete(HELLO).text == "at last"
        assert len(server.requests) == 3

    def test_ends_in_an_error_after_so_many_attempts_and_no_more(self, serve: Serve) -> None:
        server = serve([fails(500, "boom")] * 9)
        with pytest.raises(ModelError, match=r"boom.*3 attempts"):
            openai_model(server, retry=Waits().retry(attempts=3)).complete(HELLO)
        assert len(server.requests) == 3

    def test_waits_longer_each_time(self, serve: Serve) -> None:
        waits = Waits()
        openai_model(serve([*[fails(500)] * 7, says("x")]), retry=waits.retry(most_s=8.0)).complete(HELLO)
        assert len(waits.asked) == 7
        for wait_s, most_s in zip(waits.asked, (1, 2, 4, 8, 8, 8, 8), strict=True):
            assert most_s / 2 <= wait_s <= most_s

    def test_waits_as_long_as_the_provider_asks(self, serve: Serve) -> None:
        waits = Waits()
        openai_model(serve([fails(429, retry_after="20"), says("x")]), retry=waits.retry()).complete(HELLO)
        assert 20 <= waits.asked[0] <= 21

    def test_ends_at_once_when_the_provider_asks_for_too_long_a_wait(self, serve: Serve) -> None:
        waits = Waits()
        with pytest.raises(ModelError, match="3600 s"):
            openai_model(serve([fails(429, retry_after="3600")]), retry=waits.retry()).complete(HELLO)
        assert waits.asked == []

    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({}, None),
            ({"retry-after": "7"}, 7.0),
            ({"retry-after": "0.5"}, 0.5),
            ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
            ({"retry-after": formatdate(1030, usegmt=True)}, 30.0),
            ({"retry-after": formatdate(900, usegmt=True)}, 0.0),
            ({"retry-after": "soon"}, None),
        ],
    )
    def test_tells_its_wait_in_seconds_or_as_a_date(self, headers: dict[str, str], seconds: float | None) -> None:
        assert wait_asked_for(headers, now=lambda: 1000.0) == seconds

    def test_may_be_a_server_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        waits = Waits()
        model = OpenAIModel("openai/tiny", base_url=f"http://127.0.0.1:{port}/v1", retry=waits.retry(attempts=2))
        with pytest.raises(ModelError, match="openai/tiny"):
            model.complete(HELLO)
        model.close()
        assert len(waits.asked) == 1

    def test_may_be_an_answer_that_takes_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
            model = OpenAIModel("openai/tiny", base_url=url, timeout_s=0.2, retry=Waits().retry(attempts=2))
            with pytest.raises(ModelError, match="timed out"):
                model.complete(HELLO)
            model.close()


class TestAFailureForGood:
    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            (fails(400, "bad request"), ModelError),
            (fails(401), ModelError),
            (fails(402), ModelError),
            (fails(403), ModelError),
            (fails(404, "no such model"), ConfigError),
            (fails(429, "You exceeded your current quota", code="insufficient_quota"), ModelError),
            (fails(400, "too long", code="context_length_exceeded"), PolicyError),
            (fails(400, "This model's maximum context length is 4096 tokens."), PolicyError),
        ],
        ids=lambda value: str(value.status) if isinstance(value, Reply) else value.__name__,
    )
    def test_is_not_tried_again(self, serve: Serve, fault: Reply, error: type[Exception]) -> None:
        server = serve([fault, says("never")])
        with pytest.raises(error, match="openai/tiny"):
            openai_model(server).complete(HELLO)
        assert len(server.requests) == 1

    def test_does_not_quote_the_key(self, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        server = serve([fails(500, f"crashed on {KEY}"), fails(401, f"Incorrect API key provided: {KEY}")])
        with pytest.raises(ModelError) as caught:
            openai_model(server).complete(HELLO)
        assert str(caught.value).endswith("openai/tiny: 401: Incorrect API key provided: [OPENAI_API_KEY]")
        assert KEY not in "".join(r.getMessage() for r in caplog.records if r.name.startswith("agent"))


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
            make("openai/tiny", base_url="http://127.0.0.1:1/v1")

    def test_with_an_address_that_is_none_is_refused(self, serve: Serve) -> None:
        with pytest.raises(ConfigError, match="localhost:8000"):
            make("openai/tiny", base_url="localhost:8000")


@pytest.mark.filterwarnings("default")
class TestHostedProviders:
    """Through litellm, with a provider prefix that takes an address, so that the test server can be one."""

    def model(self, server: ScriptedServer, name: str = "hosted_vllm/tiny", **settings: Any) -> Model:
        from agent.models.litellm import LiteLLMModel

        return LiteLLMModel(name, base_url=server.url, **{"retry": Waits().retry(), **settings})

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
        waits = Waits()
        assert self.model(server, name, retry=waits.retry()).complete(HELLO).text == "at last"
        assert len(server.requests) == 3
        assert len(waits.asked) == 2
        assert waits.asked[0] >= 20

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

    def test_that_do_not_exist_are_a_wrong_setting(self) -> None:
        with pytest.raises(ConfigError, match="openai/Qwen/Qwen3"):
            make("Qwen/Qwen3")

    def test_without_their_key_name_its_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
            make("anthropic/claude-x")


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
