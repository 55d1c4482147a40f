"""What is known of a model before it is asked."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest

from agent.build.composition import make_parts
from agent.config import load
from agent.models.abilities import Abilities, abilities
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run


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
@pytest.mark.slow
def test_of_a_hosted_model_the_price_list_is_asked(name: str, known: Abilities) -> None:
    assert abilities(name) == known


@pytest.mark.slow
def test_the_address_of_openai_itself_is_not_ones_own_server() -> None:
    assert abilities("openai/gpt-4o", "https://api.openai.com/v1") == abilities("openai/gpt-4o")


def test_of_ones_own_server_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert abilities("openai/gpt-4o", "http://127.0.0.1:1/v1") == Abilities()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert abilities("openai/gpt-4o") == Abilities()


@pytest.mark.namespace
@pytest.mark.parametrize(
    ("overrides", "spoken_to"),
    [
        (["policy=openai/gpt-4o"], ("auto", 128_000)),
        (["policy=ollama/llama3"], ("text", 8_192)),
        (["policy=ollama/llama3", "model.tool_calls=native", "model.context_tokens=4000"], ("native", 4_000)),
    ],
)
def test_a_model_is_spoken_to_as_it_is_known_unless_the_settings_say_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: list[str], spoken_to: tuple[str, int]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests")
    monkeypatch.setenv("OLLAMA_API_BASE", "http://127.0.0.1:1")
    with Run.open(tmp_path / "run") as run, ExitStack() as held:
        policy = make_parts(load(overrides=[*overrides, "sandbox.kind=namespace"]), run, held, Event()).policy
    assert isinstance(policy, ChatPolicy)
    assert (policy.tool_calls, policy.context_tokens) == spoken_to
