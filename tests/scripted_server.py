"""A real HTTP server that speaks the OpenAI chat completions interface and says what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MODEL = "tiny"


@dataclass(frozen=True)
class Reply:
    """One response: its status, headers and body as they go over the wire."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Script = Iterable[Reply] | Callable[[Mapping[str, Any]], Reply]


def says(
    text: str | None = None,
    *calls: tuple[str, Mapping[str, Any] | str],
    finish_reason: str | None = None,
    cached: int = 0,
    usage: bool = True,
    **extra: object,
) -> Reply:
    """An answer that says `text` and calls tools (a name, and arguments or their JSON text as it is)."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": [], **extra}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{name}_{n}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for n, (name, given) in enumerate(calls)
        ]
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [
            {"index": 0, "message": message, "finish_reason": finish_reason or ("tool_calls" if calls else "stop")}
        ],
    }
    if usage:
        body["usage"] = {
            "prompt_tokens": 1000,
            "completion_tokens": 100,
            "total_tokens": 1100,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
    return Reply(json.dumps(body).encode())


def fails(status: int, message: str = "injected", code: str | None = None, **headers: str) -> Reply:
    """An error in the form that OpenAI gives it. Header names are written with underscores."""
    body = {"error": {"message": message, "type": "injected", "param": None, "code": code}}
    return Reply(json.dumps(body).encode(), status, {k.replace("_", "-"): v for k, v in headers.items()})


class ScriptedServer:
    """Serves on a free port of 127.0.0.1 while its block lasts. A list is answered from in order, then with 500."""

    def __init__(self, script: Script) -> None:
        self._script = script if callable(script) else iter(list(script))
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        """Bodies of the completion requests, oldest first."""
        self.keys: list[str] = []
        """Their Authorization headers."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def answer(self, body: dict[str, Any], key: str) -> Reply:
        with self._lock:
            self.requests.append(body)
            self.keys.append(key)
            if callable(self._script):
                return self._script(body)
            return next(self._script, fails(500, "the script has ended"))

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            models = {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "tests"}]}
            self._send(Reply(json.dumps(models).encode()) if self.path == "/v1/models" else fails(404))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path != "/v1/chat/completions":
                self._send(fails(404, f"no such path: {self.path}"))
            else:
                self._send(server.answer(body, self.headers.get("authorization", "")))

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            """The tests look at `requests` instead."""

    return Handler
