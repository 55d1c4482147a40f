"""A chat completions server that answers at once, in a process of its own: what it takes of the processor is not ours.

python -m benchmarks.perf.answering PATH         prints its port; ends when its input does
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

__all__ = ["TURNS", "server"]

NUMBERS = count()
TURNS = ("view", "edit", "shell", "view", "edit", "shell", "edit", "run_tests")
"""The tools that an answer calls, by how many answers the conversation holds already."""


@contextmanager
def server(path: str) -> Iterator[str]:
    """The base URL of one that runs as long as the block, whose answers look at the file at `path`."""
    command = [sys.executable, "-m", "benchmarks.perf.answering", path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


def main() -> None:
    """Serve until the input ends."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    print(http.server_address[1], flush=True)
    sys.stdin.read()


class Answers(BaseHTTPRequestHandler):
    """One connection, over which many questions come."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer at once, whole or as a stream of events."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        calls = [_call(sum(message["role"] == "assistant" for message in asked["messages"]))]
        usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
        if asked.get("stream"):
            delta = {"role": "assistant", "content": None, "tool_calls": [{"index": 0} | calls[0]]}
            chunks = [_body({"delta": delta}), _body({"delta": {}, "finish_reason": "tool_calls"}, usage)]
            events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
            self._send("text/event-stream", f"{events}data: [DONE]\n\n")
        else:
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            self._send(
                "application/json", json.dumps(_body({"message": message, "finish_reason": "tool_calls"}, usage))
            )

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def _body(choice: Mapping[str, Any], usage: Mapping[str, int] | None = None) -> dict[str, Any]:
    whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "instant"}
    return {**whole, "choices": [{"index": 0, **choice}], "usage": usage}


def _call(turn: int) -> dict[str, Any]:
    """The tool call of a turn; no two edits are the same."""
    number, tool = next(NUMBERS), TURNS[turn % len(TURNS)]
    arguments = {
        "view": {"path": sys.argv[1]},
        "edit": {"path": f"new_{number}.py", "old": "", "new": f"NUMBER = {number}\n"},
        "shell": {"command": f"echo {number} > note.txt"},
        "run_tests": {},
    }[tool]
    return {"id": f"call_{number}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


if __name__ == "__main__":
    main()
