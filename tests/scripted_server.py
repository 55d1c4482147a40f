"""A real HTTP server that speaks OpenAI's chat completions and Responses interfaces and says what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from typing import Any, Literal, Self

MODEL = "tiny"


@dataclass(frozen=True)
class Reply:
    """One response: its status, headers and body as they go over the wire."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    streamable: bool = False
    """Sent as a stream of events when one is asked for."""
    fault: Literal["", "cut", "stall"] = ""
    """The connection is closed, or nothing comes any more."""
    after: int = 0
    """Blocks that are sent before the fault. The headers are the first block; a stream has one for each event."""
    drip_s: float = 0.0
    """Seconds between two bytes of what comes after the headers."""
    gate: threading.Event | None = None
    """What comes after the first `after` blocks is sent when it is set; the connection is closed where it never is."""

    def fails(self, fault: Literal["cut", "stall"], after: int) -> Reply:
        return replace(self, fault=fault, after=after)

    def drips(self, seconds: float) -> Reply:
        return replace(self, drip_s=seconds)

    def waits(self, gate: threading.Event, after: int) -> Reply:
        return replace(self, gate=gate, after=after)

    def plain(self) -> Reply:
        """Unstreamed, whatever is asked for."""
        return replace(self, streamable=False)

    def blocks(self, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """The bytes of the response, in the pieces that they are sent in."""
        if self.streamable and asked.get("stream"):
            yield self._head("text/event-stream", "transfer-encoding: chunked")
            body = json.loads(self.body)
            for event in response_events(body) if body["object"] == "response" else stream_of(body, asked):
                yield b"%x\r\n%s\r\n" % (len(event), event)
            yield b"0\r\n\r\n"
        else:
            yield self._head("application/json", f"content-length: {len(self.body)}")
            yield self.body[:20]
            yield self.body[20:]

    def _head(self, kind: str, *lines: str) -> bytes:
        status = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"
        given = (f"{name}: {value}" for name, value in self.headers.items())
        return "\r\n".join((status, f"content-type: {kind}", *lines, *given, "", "")).encode()


Script = Iterable[Reply] | Callable[[Mapping[str, Any]], Reply]


def says(
    text: str | None = None,
    *calls: tuple[str, Mapping[str, Any] | str],
    finish_reason: str | None = None,
    tokens_in: int = 1000,
    cached: int = 0,
    usage: bool = True,
    logprobs: Iterable[float] = (),
    first: Sequence[Mapping[str, object]] = (),
    **extra: object,
) -> Reply:
    """An answer that says `text` and calls tools (a name, and arguments or their JSON text as it is). `first`: the
    likeliest first tokens."""
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
    if tokens := [{"token": "t", "logprob": each, "bytes": None, "top_logprobs": []} for each in logprobs]:
        body["choices"][0]["logprobs"] = {"content": tokens, "refusal": None}
    if first:
        token = {**first[0], "top_logprobs": list(first)}
        body["choices"][0]["logprobs"] = {"content": [token], "refusal": None}
    if usage:
        body["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": 100,
            "total_tokens": tokens_in + 100,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
    return Reply(json.dumps(body).encode(), streamable=True)


def responds(
    *items: Mapping[str, Any], tokens_in: int = 1000, cached: int = 0, cut_off: str = "", **changes: object
) -> Reply:
    """An answer of the Responses interface that consists of these items. `cut_off`: why it is not complete."""
    body = {
        "id": "resp_1",
        "object": "response",
        "model": MODEL,
        "status": "incomplete" if cut_off else "completed",
        "error": None,
        "incomplete_details": {"reason": cut_off} if cut_off else None,
        "output": items,
        "usage": {
            "input_tokens": tokens_in,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": 100,
            "output_tokens_details": {"reasoning_tokens": 64},
            "total_tokens": tokens_in + 100,
        },
    }
    return Reply(json.dumps(body | changes).encode(), streamable=True)


def reasoned(name: str, secret: str) -> dict[str, Any]:
    """An item that holds reasoning which only its model can read."""
    return {"type": "reasoning", "id": name, "summary": [], "encrypted_content": secret, "status": None}


def worded(text: str) -> dict[str, Any]:
    """An item that holds words."""
    said = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}


def called(name: str, call: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """An item that calls a tool."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function_call", "id": f"fc_{call}", "call_id": call, "name": name, "arguments": given}


def response_events(body: Mapping[str, Any]) -> Iterator[bytes]:
    """The events of a response. Its last one holds it whole."""
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    events = [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}]
    for index, item in enumerate(body["output"]):
        place = {"output_index": index}
        events.append({"type": "response.output_item.added", **place, "item": {**item, "status": "in_progress"}})
        for part in item["content"] if item["type"] == "message" else ():
            events += ({"type": "response.output_text.delta", **place, "delta": each} for each in _pieces(part["text"]))
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": f"response.{body['status']}", "response": body})
    for number, event in enumerate(events):
        told = json.dumps(event | {"sequence_number": number})
        yield f"event: {event['type']}\ndata: {told}\n\n".encode()


def wrong_with(body: Mapping[str, Any]) -> str:
    """What OpenAI would refuse in a request for a response, in words; empty where it would take it."""
    if body.get("store") is not False or "reasoning.encrypted_content" not in body.get("include", ()):
        return "reasoning is not asked for, or is stored"
    if unknown := {"messages", "seed", "n", "stream_options", "max_tokens", "reasoning_effort"} & body.keys():
        return f"Unknown parameter: {min(unknown)}"
    if not all({"name", "parameters", "strict"} <= tool.keys() for tool in body.get("tools", ())):
        return "Missing required parameter: tools[0].name"
    called, before = set[str](), ""
    for item in body["input"]:
        kind = item.get("type", "message")
        if None in item.values():
            return "Invalid type: expected a value, but got null instead"
        if before == "reasoning" and kind not in ("reasoning", "message", "function_call"):
            return "reasoning was provided without its required following item"
        if kind == "function_call_output" and item["call_id"] not in called:
            return f"No tool call found for function call output with call_id {item['call_id']}"
        called |= {item["call_id"]} if kind == "function_call" else set()
        before = kind
    answered = {item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"}
    return f"No tool output found for function call {min(called - answered)}" if called - answered else ""


def choices(*replies: Reply) -> Reply:
    """One answer with the choices of several, and what they cost together."""
    bodies = [json.loads(reply.body) for reply in replies]
    found = [{**body["choices"][0], "index": number} for number, body in enumerate(bodies)]
    used = {**bodies[0]["usage"], "completion_tokens": sum(body["usage"]["completion_tokens"] for body in bodies)}
    return replace(replies[0], body=json.dumps({**bodies[0], "choices": found, "usage": used}).encode())


def scores(asked: Mapping[str, Any], worth: Callable[[str], float]) -> Reply:
    """An answer to a question that echoes its prompts: each character is a token, and `worth` of the prompt is the
    log-probability of its last one."""
    choices = [
        {"index": n, "text": text, "finish_reason": "length", "logprobs": _echoed(text, worth(text))}
        for n, text in enumerate(asked["prompt"])
    ]
    used = {"prompt_tokens": sum(map(len, asked["prompt"])), "completion_tokens": 0}
    return Reply(json.dumps({"object": "text_completion", "choices": choices[::-1], "usage": used}).encode())


def _echoed(text: str, worth: float) -> dict[str, Any]:
    given = [None, *[0.0] * (len(text) - 2), worth]
    return {"tokens": list(text), "token_logprobs": given, "text_offset": list(range(len(text)))}


def stream_of(body: Mapping[str, Any], asked: Mapping[str, Any]) -> list[bytes]:
    """The events of an answer: texts in small pieces, a comment now and then, and the usage only if it is asked for."""
    side_by_side = zip_longest(*map(_grown, body["choices"]))
    chunks: list[dict[str, Any]] = [{"choices": [piece]} for pieces in side_by_side for piece in pieces if piece]
    if (asked.get("stream_options") or {}).get("include_usage") and "usage" in body:
        chunks.append({"choices": [], "usage": body["usage"]})
    frame = {"id": body["id"], "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
    events = (b"data: %s\n\n" % json.dumps(frame | chunk).encode() for chunk in chunks)
    return [b": still here\n\n", *events, b"data: [DONE]\n\n"]


def _grown(choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    index = choice["index"]
    for delta in _deltas(choice["message"]):
        yield {"index": index, "delta": delta, "finish_reason": None}
    for token in (choice.get("logprobs") or {}).get("content", ()):
        logprobs = {"content": [token], "refusal": None}
        yield {"index": index, "delta": {}, "logprobs": logprobs, "finish_reason": None}
    yield {"index": index, "delta": {}, "finish_reason": choice["finish_reason"]}


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None}
    for key, value in message.items():
        if key == "tool_calls":
            for index, call in enumerate(value):
                function = call["function"]
                yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
                for piece in _pieces(function["arguments"]):
                    yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
        elif isinstance(value, str) and key != "role":
            for piece in _pieces(value):
                yield {key: piece}
        elif value and key != "role":
            yield {key: value}


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), 7):
        yield text[start : start + 7]


def fails(status: int, message: str = "injected", code: str | None = None, **headers: str) -> Reply:
    """An error in the form that OpenAI gives it. Header names are written with underscores."""
    body = {"error": {"message": message, "type": "injected", "param": None, "code": code}}
    return Reply(json.dumps(body).encode(), status, {k.replace("_", "-"): v for k, v in headers.items()})


class ScriptedServer:
    """Serves on a port of 127.0.0.1, a free one unless it is given, while its block lasts. A list is answered from in
    order, then with 500."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self._script = script if callable(script) else iter(list(script))
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        """Bodies of the completion requests, oldest first."""
        self.keys: list[str] = []
        """Their Authorization headers."""
        self.connections: list[Any] = []
        """The client's address of each."""
        self.over = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def answer(self, body: dict[str, Any], key: str, client: Any = None) -> Reply:
        with self._lock:
            self.requests.append(body)
            self.keys.append(key)
            self.connections.append(client)
            if callable(self._script):
                return self._script(body)
            return next(self._script, fails(500, "the script has ended"))

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            models = {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "tests"}]}
            self._send(Reply(json.dumps(models).encode()) if self.path in ("/v1/models", "/health") else fails(404), {})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path not in ("/v1/chat/completions", "/v1/messages", "/v1/completions", "/v1/responses"):
                self._send(fails(404, f"no such path: {self.path}"), body)
            elif self.path == "/v1/responses" and (wrong := wrong_with(body)):
                self._send(fails(400, wrong), body)
            else:
                self._send(server.answer(body, self.headers.get("authorization", ""), self.client_address), body)

        def _send(self, reply: Reply, asked: Mapping[str, Any]) -> None:
            try:
                for number, block in enumerate(reply.blocks(asked)):
                    if reply.fault and number == reply.after:
                        self.close_connection = True
                        if reply.fault == "stall":
                            server.over.wait()
                        return
                    if reply.gate and number == reply.after and not reply.gate.wait(100):
                        self.close_connection = True
                        return
                    self._write(block, reply.drip_s if number else 0)
            except (BrokenPipeError, ConnectionResetError):  # the client has gone
                self.close_connection = True

        def _write(self, block: bytes, drip_s: float) -> None:
            if not drip_s:
                self.wfile.write(block)
                return
            for byte in block:
                self.wfile.write(bytes([byte]))
                if server.over.wait(drip_s):
                    return

        def log_message(self, *_: object) -> None:
            """The tests look at `requests` instead."""

    return Handler
