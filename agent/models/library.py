"""Import litellm lazily, because it takes seconds, and look models up in its list."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit


def load() -> Any:
    """Import litellm, without its download of a price list and its prints."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    litellm.disable_streaming_logging = True
    return litellm


def is_own_server(base_url: str | None) -> bool:
    """Whether requests for `openai/NAME` go to a server other than OpenAI's, whose models are in no list."""
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    return bool(url) and urlsplit(url).hostname != "api.openai.com"


def entry_of(name: str, base_url: str | None = None) -> Mapping[str, Any]:
    """What litellm's list says about a model; empty if it does not have the model. For the user's own server the list
    is not loaded."""
    if name.startswith("openai/") and is_own_server(base_url):
        return {}
    entries = load().model_cost
    return entries.get(name) or entries.get(name.partition("/")[2]) or {}
