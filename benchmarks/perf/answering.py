"""A chat completions server in this process, which answers at once and without streaming."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the assistant's message for the body of a request."""


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
