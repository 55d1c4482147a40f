"""The conversation of a branch: what a turn stores in its Step, and the messages that a row of Steps stands for.

Law: a turn's messages are made once, when it is taken, and read back from then on. So the conversations of two nodes
begin with the same bytes as far as they share a branch, and a provider's prefix cache holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from agent.actions import schema
from agent.models import Message
from agent.policy import tagged
from agent.policy.forms import Form
from agent.tree import Node, Step

__all__ = ["branch", "pack"]


def pack(given: Sequence[Message], answer: Message) -> str:
    """What `Step.message` holds of a turn: the messages that were put before it, and the answer to send back."""
    return json.dumps({"given": list(given), "answer": answer}, ensure_ascii=True)


def branch(path: Sequence[Node], steps: Sequence[Step], form: Form) -> list[Message]:
    """The messages of all turns from the root to the node that ends the path, and of the turns taken from there. Turns
    that another policy took, or a model in the other form, read as if they had been taken in this one."""
    turns = [(f"{node.id}_{n}", step) for node in path for n, step in enumerate(node.steps)]
    turns += [(f"{path[-1].id}_next_{n}", step) for n, step in enumerate(steps)]
    return [message for key, step in turns for message in _turn(key, step, form)]


def _turn(key: str, step: Step, form: Form) -> Iterator[Message]:
    given, answer = _unpack(step.message) or ((), None)
    yield from given
    if answer is None or (step.actions and not form.written(answer)):
        answer = form.say(key, _words(step.message if answer is None else answer.get("content")), step.actions)
    yield answer
    if step.actions:
        yield from form.results(answer, step.actions, [observation.text for observation in step.observations])


def _words(content: object) -> str:
    """What was said beside the calls."""
    return tagged.read(content, schema()).said if isinstance(content, str) else ""


def _unpack(message: str) -> tuple[list[Message], Message] | None:
    """What `pack` stored; None when another policy took the turn."""
    try:
        stored = json.loads(message)
    except ValueError:
        return None
    if not isinstance(stored, dict) or stored.keys() != {"given", "answer"}:
        return None
    return stored["given"], stored["answer"]
