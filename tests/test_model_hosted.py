"""Hosted providers, through litellm, over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from agent.errors import ConfigError, ModelError, PolicyError
from agent.models import Model
from agent.models.registry import make
from tests.clients import HELLO, KEY, TOOLS, Clock, Serve
from tests.scripted_server import ScriptedServer, fails, says


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
