"""The conversation of a branch: what a turn stores in its Step, and the messages that a sequence of Steps stands for.

Invariant: a turn's messages are composed once, when the turn is taken, and later only read back. So the conversations
of two nodes begin with the same bytes as far as the nodes share a branch, and a provider's prefix cache works.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agent.actions.excerpt import excerpt
from agent.models import Message
from agent.parsing import loads
from agent.policy.chat import tagged
from agent.policy.chat.dialects import ToolDialect
from agent.prompts import render
from agent.run.tree.node import Node, Step

SHORT_BYTES = 300
"""A shorter result is never left out: the note in its place would be just as long."""
SPARED_BYTES = 128
"""A result that exceeds its limit by no more than this stays whole: cutting it would save little."""


def pack(request: Sequence[Message], answer: Message, left_out: int = 0, plan: Sequence[int] = ()) -> str:
    """The content of `Step.message` for a turn: the messages put before the answer, the answer to send back, how many
    turns of the branch (oldest first) the model saw without their results, and the plan step that the turn carries out
    (`agent.policy.chat.plan_tree.PlanPath`)."""
    turn: dict[str, Any] = {"given": list(request), "answer": answer}
    turn |= ({"left_out": left_out} if left_out else {}) | ({"plan": list(plan)} if plan else {})
    return json.dumps(turn, ensure_ascii=True)


def left_out(path: Sequence[Node], steps: Sequence[Step]) -> int:
    """How many turns, oldest first, were sent without their results when the last turn of the branch was taken."""
    turns = [step for node in path for step in node.steps] + list(steps)
    stored = (unpack(step.message) for step in reversed(turns))
    return next((int(turn.get("left_out", 0)) for turn in stored if turn), 0)


def said(step: Step) -> str:
    """The words of a turn, by any policy."""
    stored = unpack(step.message)
    content = step.message if stored is None else stored["answer"].get("content")
    return tagged.read(content).text if isinstance(content, str) else ""


def branch(
    path: Sequence[Node], steps: Sequence[Step], dialect: ToolDialect, without: int = 0, most_bytes: int | None = None
) -> list[Message]:
    """The messages of all turns on the path, and of the `steps` taken from its last node. Turns by another policy or in
    another dialect are rewritten in this one.

    `without`: how many turns, oldest first, have their results left out. `most_bytes`: the results of one turn together
    are cut to about this size."""
    turns = [(f"{node.id}_{n}", step) for node in path for n, step in enumerate(node.steps)]
    turns += [(f"{path[-1].id}_next_{n}", step) for n, step in enumerate(steps)]
    return [
        message
        for number, (key, step) in enumerate(turns)
        for message in _turn(key, step, dialect, _results(step, number < without, most_bytes))
    ]


def _turn(key: str, step: Step, dialect: ToolDialect, results: Sequence[str]) -> Iterator[Message]:
    stored = unpack(step.message)
    yield from stored["given"] if stored else ()
    answer = stored["answer"] if stored else None
    if answer is None or (step.actions and not dialect.uses_dialect(answer)):
        answer = dialect.render_turn(key, said(step), step.actions)
    yield answer
    if step.actions:
        yield from dialect.results(answer, step.actions, results)


def _results(step: Step, left_out: bool, most_bytes: int | None) -> list[str]:
    """A turn's results, cut or left out as asked."""
    texts = [observation.text for observation in step.observations]
    if most_bytes is not None and texts:
        limit = max(SHORT_BYTES, most_bytes // len(texts))
        texts = [
            text if len(text.encode("utf-8", "replace")) <= limit + SPARED_BYTES else excerpt(text, limit)[0]
            for text in texts
        ]
    return [_without(text) if left_out and len(text) > SHORT_BYTES else text for text in texts]


def _without(text: str) -> str:
    return render("chat_left_out", bytes=len(text.encode("utf-8", "replace")))


def unpack(message: str) -> dict[str, Any] | None:
    """What `pack` stored; None for a turn of another policy."""
    try:
        stored = loads(message)
    except ValueError:
        return None
    packed = isinstance(stored, dict) and stored.keys() - {"left_out", "plan"} == {"given", "answer"}
    return stored if packed else None
