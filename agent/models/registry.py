"""Models by name: `openai/NAME` with a base URL is spoken to directly, every other `PROVIDER/NAME` through litellm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

from agent.errors import ConfigError
from agent.models import Model
from agent.models.deadlines import Deadlines
from agent.models.prices import is_own_server

__all__ = ["MODELS", "make"]


def _openai(name: str, **settings: Any) -> Model:
    from agent.models.openai import OpenAIModel

    return OpenAIModel(name, **settings)


def _litellm(name: str, **settings: Any) -> Model:
    from agent.models.litellm import LiteLLMModel

    return LiteLLMModel(name, **settings)


MODELS: dict[str, Callable[..., Model]] = {"openai": _openai, "litellm": _litellm}
"""The clients. Each imports what it needs when it is made."""


def make(name: str, **settings: Any) -> Model:
    """The model that the user named. The settings are keywords of the client (`base_url`, `price`, `temperature`, ...)
    and of its `Deadlines`.

    Raises:
        ConfigError: the name says no provider, the provider is unknown, its key is not set, the URL holds a password.
    """
    provider, _, model = name.partition("/")
    if not model:
        raise ConfigError(f"model {name!r}: write PROVIDER/NAME, such as openai/{name}")
    given = {key: settings.pop(key) for key in [f.name for f in fields(Deadlines)] if key in settings}
    settings["deadlines"] = Deadlines(**given)
    if "@" in urlsplit(settings.get("base_url") or "").netloc:
        raise ConfigError("the base URL holds a password, which would be recorded: give the key by the environment")
    own_server = provider == "openai" and is_own_server(settings.get("base_url"))
    client = "openai" if own_server else "litellm"
    return MODELS[client](name, **settings)
