"""Models by name: `openai/NAME` with a base URL, and OpenAI's own reasoning models, are reached directly, all others
through litellm."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from agent.errors import ConfigError
from agent.models import Model
from agent.models.abilities import reasons
from agent.models.deadlines import Deadlines
from agent.models.library import is_own_server
from agent.models.prices import listed

if TYPE_CHECKING:
    from agent.models.openai import OpenAIModel


def make(name: str, *, api: Literal["auto", "chat", "responses"] = "auto", **settings: Any) -> Model:
    """Make the model that the user named. The settings are keywords of the client (`base_url`, `price`, `temperature`,
    ...) and of its `Deadlines`; `api` chooses between OpenAI's interfaces (`auto`: Responses for OpenAI's own reasoning
    models).

    Raises:
        ConfigError: the name has no provider, the provider is unknown, its key is not set, the URL holds a password, or
            the provider does not have that interface.
    """
    provider, _, model = name.partition("/")
    if not model:
        raise ConfigError(_whose(name))
    if "@" in urlsplit(settings.get("base_url") or "").netloc:
        raise ConfigError("the base URL holds a password, which would be recorded: set the key in the environment")
    if api == "responses" and provider != "openai":
        raise ConfigError(f"model.api=responses works for openai/NAME, not for {name}: leave it out")
    deadlines = Deadlines(**{key: settings.pop(key) for key in [f.name for f in fields(Deadlines)] if key in settings})
    own_server = provider == "openai" and is_own_server(settings.get("base_url"))
    if api == "responses" or (api == "auto" and provider == "openai" and not own_server and reasons(model)):
        return _responses(name, deadlines, own_server, **settings)
    if own_server:
        return _openai(name, deadlines, **settings)
    from agent.models.litellm import LiteLLMModel

    return LiteLLMModel(name, deadlines=deadlines, **settings)


def _openai(name: str, deadlines: Deadlines, *, cache_ttl: object = None, **settings: Any) -> OpenAIModel:
    """A client of OpenAI's interfaces, in which a cache has no lifetime to set."""
    from agent.models.openai import OpenAIModel

    return OpenAIModel(name, deadlines=deadlines, **settings)


def _responses(name: str, deadlines: Deadlines, own_server: bool, **settings: Any) -> Model:
    """Whether a model reasons is looked up for OpenAI's own server; for other servers, a configured effort implies that
    it does."""
    from agent.models.responses import ResponsesModel

    thinks = settings.get("reasoning_effort") is not None if own_server else reasons(name.partition("/")[2])
    if settings.get("price") is None:
        settings["price"] = listed(name, settings.get("base_url"))
    patient = replace(deadlines, idle_s=max(deadlines.idle_s, deadlines.first_token_s))
    return ResponsesModel(_openai(name, patient, **settings), reasons=thinks)


PROVIDERS = {"claude": "anthropic", "gemini": "gemini", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai"}
"""The provider of hosted models, by how their names begin."""


def _whose(name: str) -> str:
    """The advice for a model that was named without its provider."""
    for beginning, provider in PROVIDERS.items():
        if name.startswith(beginning):
            return f"model {name!r}: write {provider}/{name}"
    return (
        f"model {name!r}: write PROVIDER/NAME, such as anthropic/claude-sonnet-4-5; for a server of your own, "
        f"openai/{name} with -c model.base_url=URL"
    )
