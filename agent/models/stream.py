"""Assemble a streamed answer: server-sent events into the JSON of the same answer without streaming."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

DONE = b"[DONE]"
_REPLACED = frozenset({"role", "type", "index", "format"})
"""Fields that every piece contains completely."""
_REPEATED = frozenset({"id", "name"})
"""Fields that some servers repeat in every piece."""


def is_stream(data: bytes) -> bool:
    """Whether a body is a stream of events. Some servers send plain JSON although a stream was requested."""
    return data.lstrip().startswith((b"data:", b"event:", b"id:", b"retry:", b":"))


def events(data: bytes) -> Iterator[Any]:
    """The JSON of each event. Comments, which keep the connection alive, are skipped.

    Raises:
        ValueError: an event is not JSON.
    """
    for block in data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n"):
        lines = (line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:"))
        event = b"\n".join(lines)
        if event and event != DONE:
            yield json.loads(event.decode("utf-8", "replace"))


def assemble(chunks: Iterable[Any]) -> dict[str, Any]:
    """The answer made of these pieces: its choices in order, and its usage. It has an `error` instead of choices if the
    server reports one, or if a choice has no finish reason.

    Raises:
        AttributeError, KeyError, TypeError: a piece is malformed.
    """
    answer: dict[str, Any] = {"usage": None}
    growing: dict[int, _Choice] = {}
    for chunk in chunks:
        if chunk.get("error"):
            return {**answer, "error": chunk["error"]}
        answer["usage"] = chunk.get("usage") or answer["usage"]
        for choice in chunk.get("choices") or ():
            growing.setdefault(choice.get("index", 0), _Choice()).grow(choice)
    if not growing or any(choice.finish_reason is None for choice in growing.values()):
        return {**answer, "error": {"message": "the stream ended before the answer did"}}
    return {**answer, "choices": [growing[index].whole() for index in sorted(growing)]}


class _Choice:
    """One of the answers to a request, as received so far."""

    def __init__(self) -> None:
        self.finish_reason: Any = None
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._tokens: list[Any] = []

    def grow(self, piece: Mapping[str, Any]) -> None:
        _merge(self._message, piece.get("delta") or {})
        self.finish_reason = piece.get("finish_reason") or self.finish_reason
        self._tokens += (piece.get("logprobs") or {}).get("content") or ()

    def whole(self) -> dict[str, Any]:
        logprobs = {"logprobs": {"content": self._tokens}} if self._tokens else {}
        return {"message": _joined(self._message), "finish_reason": self.finish_reason, **logprobs}


class _Text(list[str]):
    """The parts of a text that is still growing."""


def _merge(whole: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for key, value in piece.items():
        if value is None:
            whole.setdefault(key, None)
        elif key in _REPLACED:
            whole[key] = value
        elif isinstance(value, str):
            _append(whole, key, value)
        elif isinstance(value, dict):
            whole[key] = whole.get(key) or {}
            _merge(whole[key], value)
        elif isinstance(value, list):
            whole[key] = whole.get(key) or []
            _extend(whole[key], value, calls=key == "tool_calls")
        else:
            whole[key] = value


def _append(whole: dict[str, Any], key: str, text: str) -> None:
    grown = whole.get(key)
    if not isinstance(grown, _Text):
        whole[key] = _Text([text])
    elif key not in _REPEATED or "".join(grown) != text:
        grown.append(text)


def _extend(whole: list[Any], pieces: list[Any], *, calls: bool) -> None:
    """Merge pieces into their items. A piece that does not name its item becomes an item of its own."""
    for piece in pieces:
        item = _item(whole, piece, calls=calls) if isinstance(piece, dict) else None
        if item is None:
            whole.append(item := {} if isinstance(piece, dict) else piece)
        if isinstance(piece, dict):
            _merge(item, piece)


def _item(whole: list[Any], piece: Mapping[str, Any], *, calls: bool) -> dict[str, Any] | None:
    """The item that a piece continues, if any. A call with a different id is new: some servers number every call 0."""
    index = piece.get("index")
    same = [item for item in whole if isinstance(item, dict) and item.get("index") == index]
    if not calls:
        return same[-1] if same and index is not None else None
    other = piece.get("id") and (piece.get("function") or {}).get("name")
    if same and not (other and "".join(same[-1].get("id") or "") != piece["id"]):
        return same[-1]
    return None


def _joined(value: Any) -> Any:
    """The value with its texts joined, and calls without their stream indexes."""
    if isinstance(value, _Text):
        return "".join(value)
    if isinstance(value, dict):
        joined = {key: _joined(part) for key, part in value.items()}
        for call in joined.get("tool_calls") or ():
            call.pop("index", None)
        return joined
    return [_joined(item) for item in value] if isinstance(value, list) else value
