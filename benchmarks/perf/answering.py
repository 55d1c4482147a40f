"""A chat completions server that answers at once, in this process or in a separate one.

python -m benchmarks.perf.answering PATH         prints its port; ends when its input does
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the assistant's message for the body of a request."""

NUMBERS = count()
TURNS = ("view", "edit", "shell", "view", "edit", "shell", "edit", "run_tests")
"""The tool that an answer calls, by the number of earlier answers in the conversation."""


@contextmanager
def server(path: str) -> Iterator[str]:
    """Yield the base URL of a server in a separate process, whose answers view the file at `path`."""
    command = [sys.executable, "-m", "benchmarks.perf.answering", path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Yield the base URL of a server in this process, which answers by `answer`."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Answers, answer))
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}/v1"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def main() -> None:
    """Serve until the input ends."""
    with serving(_next_turn) as url:
        print(url.split(":")[2].removesuffix("/v1"), flush=True)
        sys.stdin.read()


class Answers(BaseHTTPRequestHandler):
    """Handles one connection with many requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def __init__(self, answer: Answer, *connected: Any) -> None:
        self._answer = answer
        super().__init__(*connected)

    def do_POST(self) -> None:
        """Answer at once, whole or as a stream of events."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", "content": None, **self._answer(asked)}
        ended = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
        if asked.get("stream"):
            delta = message | {"tool_calls": [{"index": n} | c for n, c in enumerate(message.get("tool_calls", ()))]}
            chunks = [_body({"delta": delta}), _body({"delta": {}, "finish_reason": ended}, usage)]
            events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
            self._send("text/event-stream", f"{events}data: [DONE]\n\n")
        else:
            self._send("application/json", json.dumps(_body({"message": message, "finish_reason": ended}, usage)))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _body(choice: Mapping[str, Any], usage: Mapping[str, int] | None = None) -> dict[str, Any]:
    whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "instant"}
    return {**whole, "choices": [{"index": 0, **choice}], "usage": usage}


def _next_turn(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The tool call for the next turn; no two edits are the same."""
    turn = sum(message["role"] == "assistant" for message in asked["messages"])
    number, tool = next(NUMBERS), TURNS[turn % len(TURNS)]
    arguments = {
        "view": {"path": sys.argv[1]},
        "edit": {"path": f"new_{number}.py", "old": "", "new": f"NUMBER = {number}\n"},
        "shell": {"command": f"echo {number} > note.txt"},
        "run_tests": {},
    }[tool]
    called = {"name": tool, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": f"call_{number}", "type": "function", "function": called}]}


if __name__ == "__main__":
    main()
