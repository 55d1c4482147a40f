"""Classify a provider's failure: wrong settings, a refusal, a conversation that is too long, or a transient fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from agent.errors import ConfigError, ModelError, RamifyError, TooLong, ToolsRefused
from agent.models.http import failures
from agent.models.retry import UNKNOWN, Transient, Unreachable, wait_asked_for
from agent.redaction import redacted

if TYPE_CHECKING:
    import httpx
    from openai import APIError


MESSAGE_CHARS = 500
_PASSING = frozenset({408, 409, 425, 429})
_OUT_OF_MONEY = re.compile(r"insufficient_quota|billing_hard_limit_reached|billing_not_active")
_TOO_LONG = re.compile(
    r"context[ _](?:length|window)|maximum context|prompt is too long|too many (?:input )?tokens|input is too long",
    re.I,
)
_NO_TOOLS = re.compile(
    r"not support (?:tool|function)|support tool use|tool choice requires|tools param requires|tool_call_parser"
    r"|(?:tools?|functions?)['\"`]?(?: call\w*)? (?:is|are) not |un(?:supported|known|recognized) [^.]*\btools\b",
    re.I,
)
"""Messages of servers that do not support tools (Ollama, OpenRouter, vLLM, llama.cpp, SGLang, OpenAI, ...)."""


def meaning(error: APIError, model: str) -> RamifyError | Transient:
    """The exception to raise for an error of the `openai` client, or of litellm, whose errors derive from it."""
    if (refusal := _refusal(error)) is not None:
        return Unreachable(f"{model}: no connection to {refusal}")
    status = getattr(error, "status_code", None)
    code = f"{error.code} {error.message}"
    failure = fault(model, _message(error), status, code, wait_asked_for(_headers(error)))
    if status is None and not _never_connected(error):
        failure.usage = UNKNOWN
    return failure


def fault(
    model: str, message: str, status: int | None = None, code: str = "", wait_s: float | None = None
) -> RamifyError | Transient:
    """The exception to raise for a server's message. `code` is further text that may hold an error code."""
    shown = redacted(" ".join(message.split()))[:MESSAGE_CHARS]
    text = f"{model}: {shown}" if status is None else f"{model}: {status}: {shown}"
    words = f"{code} {message}"
    if status in (None, 400, 413, 422) and _TOO_LONG.search(words):
        return TooLong(f"the conversation is too long for {text}")
    if status in (400, 404, 405, 422, 500, 501) and _NO_TOOLS.search(message):
        return ToolsRefused(f"the server does not support tools: {text}; model.tool_calls=text describes them in words")
    if status in (401, 403):
        return ModelError(f"the provider refuses the key: {text}")
    if status == 404:
        return ConfigError(f"no such model, or no such address: {text}")
    if status == 402 or _OUT_OF_MONEY.search(words):
        return ModelError(f"the account has no credit left: {text}")
    if status is None or status in _PASSING or status >= 500:
        return Transient(text, wait_s)
    if "stream" in message.lower():
        text += " (a server that cannot stream: -c model.stream=false)"
    return ModelError(text)


def _never_connected(error: BaseException) -> bool:
    """Whether no connection was made, so that nothing can have been charged."""
    return isinstance(error.__cause__, failures("ConnectTimeout", "UnsupportedProtocol"))


def _refusal(error: BaseException) -> str | None:
    """The server to which no connection was made, and the reason; None if that is not what failed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, failures("ConnectError")):
            url = cast("httpx.ConnectError", cause).request.url
            return f"{url.scheme}://{url.netloc.decode('ascii')}: {cause}"
        cause = cause.__cause__ or cause.__context__
    return None


def _message(error: APIError) -> str:
    """The provider's own message, without the client's wrapping if the two can be told apart."""
    words = error.body.get("message") if isinstance(error.body, Mapping) else None
    return words if isinstance(words, str) else error.message


def _headers(error: APIError) -> Mapping[str, str]:
    """The response's headers, which litellm keeps in a field of its own."""
    headers: Mapping[str, str] | None = getattr(error, "litellm_response_headers", None)
    return headers or getattr(getattr(error, "response", None), "headers", {})
