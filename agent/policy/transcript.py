"""The conversation of a branch: what a turn stores in its Step, and the messages that a row of Steps stands for.

Law: a turn's messages are made once, when it is taken, and read back from then on. So the conversations of two nodes
begin with the same bytes as far as they share a branch, and a provider's prefix cache holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agent.actions import as_call
from agent.models import Message
from agent.tree import Node, Step

__all__ = ["branch", "pack"]


def pack(given: Sequence[Message], answer: Message) -> str:
    """What `Step.message` holds of a turn: the messages that were put before it, and the answer to send back."""
    return json.dumps({"given": list(given), "answer": answer}, ensure_ascii=True)


def branch(path: Sequence[Node], steps: Sequence[Step]) -> list[Message]:
    """The messages of all turns from the root to the node that ends the path, and of the turns taken from there."""
    turns = [(f"{node.id}_{n}", step) for node in path for n, step in enumerate(node.steps)]
    turns += [(f"{path[-1].id}_next_{n}", step) for n, step in enumerate(steps)]
    return [message for key, step in turns for message in _turn(key, step)]


def _turn(key: str, step: Step) -> Iterator[Message]:
    stored = _unpack(step.message)
    given, answer = stored if stored is not None else ((), _as_if_answered(key, step))
    yield from given
    yield answer
    for call, observation in zip(answer.get("tool_calls", ()), step.observations, strict=True):
        yield {"role": "tool", "tool_call_id": call["id"], "content": observation.text}


def _unpack(message: str) -> tuple[list[Message], Message] | None:
    """What `pack` stored; None when another policy took the turn."""
    try:
        stored = json.loads(message)
    except ValueError:
        return None
    if not isinstance(stored, dict) or stored.keys() != {"given", "answer"}:
        return None
    return stored["given"], stored["answer"]


def _as_if_answered(key: str, step: Step) -> Message:
    """Another policy's turn in the form of a model's answer."""
    calls = [_call(f"call_{key}_{n}", *as_call(action)) for n, action in enumerate(step.actions)]
    return {"role": "assistant", "content": step.message, "tool_calls": calls}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
