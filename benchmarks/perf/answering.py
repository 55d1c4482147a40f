"""A chat completions server in this process, which answers at once and without streaming, and helpers for answering: to
read questions and to call tools."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the assistant's message for the body of a request."""
ATTEMPT = re.compile(r"^## Attempt ([A-Z])$", re.MULTILINE)
"""The heading of an attempt in a vote."""


def called(calls: Iterable[tuple[str, Mapping[str, Any]]], mark: str = "") -> list[dict[str, Any]]:
    """The `tool_calls` of a message, from names and arguments; `mark` tells those of one message from others."""
    return [
        {"id": f"call_{mark}{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]


def by_letter(heading: re.Pattern[str], question: str) -> dict[str, str]:
    """The texts below the headings of a question, by the letter that each heading has."""
    _, *pieces = heading.split(question)
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Yield the base URL of a server that answers by `answer`."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Answers, answer))
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}/v1"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


class Answers(BaseHTTPRequestHandler):
    """Handles one connection with many requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def __init__(self, answer: Answer, *connected: Any) -> None:
        self._answer = answer
        super().__init__(*connected)

    def do_POST(self) -> None:
        """Answer at once."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", "content": None, **self._answer(asked)}
        ended = "tool_calls" if message.get("tool_calls") else "stop"
        answer = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "instant",
            "choices": [{"index": 0, "message": message, "finish_reason": ended}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""
