"""What is known of a model before it is asked."""

from __future__ import annotations

import pytest

from agent.models.abilities import Abilities, abilities


@pytest.fixture(autouse=True)
def hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("openai/gpt-4o", Abilities(tools=True, context_tokens=128_000)),
        ("ollama/llama3", Abilities(tools=False, context_tokens=8_192)),
        ("openrouter/nobody/knows-it", Abilities()),
    ],
)
def test_of_a_hosted_model_the_price_list_is_asked(name: str, known: Abilities) -> None:
    assert abilities(name) == known


def test_of_ones_own_server_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert abilities("openai/gpt-4o", "http://127.0.0.1:1/v1") == Abilities()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert abilities("openai/gpt-4o") == Abilities()
