"""Checks which features that a search can use a model server has, by trying each once."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from agent.cli.doctor.report import Finding
from agent.errors import ConfigError

TIMEOUT_S = 120
LONG = "The quick brown fox jumps over the lazy dog. " * 60
"""A prompt that is long enough to fill blocks of a prefix cache."""
TOOL = {
    "type": "function",
    "function": {
        "name": "run_tests",
        "description": "Run the tests.",
        "parameters": {"type": "object", "properties": {}},
    },
}


def examine_model(name: str, base_url: str | None) -> Iterator[Finding]:
    """Check the server of `openai/NAME` for each feature that a search can use; each check may cost a few tokens.

    Raises:
        ConfigError: no server is named.
    """
    base_url = base_url or os.environ.get("OPENAI_BASE_URL")
    if not base_url:
        raise ConfigError(f"--model {name}: name its server with --base-url or OPENAI_BASE_URL")
    server = _Server(base_url.rstrip("/"), name.removeprefix("openai/"))
    for title, ask, remedy in _CHECKS:
        try:
            detail = ask(server)
            ok = not detail.startswith("no")
        except urllib.error.HTTPError as error:
            ok, detail = False, _refusal(error)
        except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
            ok, detail = False, f"{type(error).__name__}: {error}"
        yield Finding(title, ok, detail, "" if ok else remedy)
        if title == "server" and not ok:
            return


def _refusal(error: urllib.error.HTTPError) -> str:
    """Return the status and the server's message, or the standard reason if the message is an HTML page."""
    message = error.read()[:200].decode(errors="replace").strip()
    return f"{error.code}: {error.reason if message.startswith('<') else message}"


@dataclass(frozen=True, slots=True)
class _Server:
    url: str
    model: str

    def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        return self._send(urllib.request.Request(self.url + path))  # noqa: S310 - the user's own server

    def post(self, path: str, **body: Any) -> Any:
        """Return the answer to a request to the model."""
        data = json.dumps({"model": self.model, **body}).encode()
        return self._send(urllib.request.Request(self.url + path, data, {"content-type": "application/json"}))  # noqa: S310

    def chat(self, text: str, **body: Any) -> Any:
        """Return the answer to a single chat message."""
        return self.post("/chat/completions", messages=[{"role": "user", "content": text}], **body)

    def _send(self, request: urllib.request.Request) -> Any:
        request.add_header("authorization", f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}")
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return json.load(answer)


def _reached(server: _Server) -> str:
    names = [model["id"] for model in server.get("/models")["data"]]
    return f"serves {', '.join(names)}" if server.model in names else f"no model {server.model}: {', '.join(names)}"


def _tools(server: _Server) -> str:
    answer = server.chat("Call the tool run_tests now.", tools=[TOOL], max_tokens=200, temperature=0)
    calls = answer["choices"][0]["message"].get("tool_calls")
    return f"calls {calls[0]['function']['name']}" if calls else "no call, although one was asked for"


def _several(server: _Server) -> str:
    choices = server.chat("Say a word.", n=2, max_tokens=2, temperature=1.0)["choices"]
    return "several answers to one request" if len(choices) == 2 else f"no: {len(choices)} answers instead of 2"


def _logprobs(server: _Server) -> str:
    choice = server.chat("Say a word.", logprobs=True, max_tokens=2)["choices"][0]
    logprobs = (choice.get("logprobs") or {}).get("content")
    return "of its answers" if logprobs else "no log-probabilities of its answers"


def _scores(server: _Server) -> str:
    choice = server.post("/completions", prompt=["a b c"], echo=True, logprobs=0, max_tokens=0)["choices"][0]
    scored = choice.get("logprobs") and "a b c" in choice["text"]
    return "of given texts (--model edit)" if scored else "no log-probabilities of given texts"


def _cached(server: _Server) -> str:
    for _ in range(2):
        used = server.chat(LONG, max_tokens=1).get("usage") or {}
    cached = (used.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return f"{cached} of {used['prompt_tokens']} tokens of a repeated prompt" if cached else "no hit is reported"


_CHECKS: tuple[tuple[str, Callable[[_Server], str], str], ...] = (
    ("server", _reached, "start one: ramify serve MODEL; its names are at /v1/models"),
    ("tools", _tools, "--enable-auto-tool-choice --tool-call-parser NAME, or -c model.tool_calls=text"),
    ("several", _several, "searches send a request for each answer instead"),
    ("logprobs", _logprobs, "no log-probabilities are recorded; exports say so"),
    ("scores", _scores, "the policy `edit` needs them: serve the model with vLLM"),
    ("prefixes", _cached, "--enable-prefix-caching --enable-prompt-tokens-details"),
)
