"""The turns of a path as a reader sees them: new messages, answer, actions and observations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from agent.actions import Action, Observation, as_call
from agent.learning.export.turns import Turn
from agent.models import Message
from agent.parsing import loads
from agent.run.run import Run
from agent.run.tree.node import NodeId

NOT_CARRIED_OUT = Observation("", ok=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One action and its observation."""

    id: str
    name: str
    arguments: dict[str, Any]
    action: Action
    seen: Observation


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn with its new messages and its calls."""

    turn: Turn
    given: tuple[Message, ...]
    """The messages of its prompt that are new."""
    calls: tuple[Call, ...]
    native: bool
    """Whether the answer uses the provider's tool calls; otherwise the calls are in its text."""


def exchanges(turns: Sequence[Turn]) -> Iterator[Exchange]:
    """The turns of a path, in order."""
    before: Turn | None = None
    for turn in turns:
        tool_calls = turn.answer.get("tool_calls") or ()
        yield Exchange(turn, _given(turn, before), tuple(_calls(turn, tool_calls)), bool(tool_calls))
        before = turn


def winner(run: Run) -> NodeId | None:
    """The node of the run's final patch; without one, the best state of the best rollout. None: nothing was tried."""
    if run.ended is not None and run.ended.best is not None:
        return run.ended.best
    best = max(run.rollouts(), key=lambda rollout: (run.tree[rollout.best].value, -rollout.leaf), default=None)
    return best.best if best else None


def patch_of(run: Run) -> str:
    """The run's final patch; empty without one."""
    blob = run.ended.patch_blob if run.ended else None
    return run.journal.get_blob(blob).decode(errors="replace") if blob else ""


def _given(turn: Turn, before: Turn | None) -> tuple[Message, ...]:
    """The new messages of a turn's prompt. If the prompt does not continue the conversation, because old results were
    left out, they are those after the last answer and its results."""
    if before is None:
        return turn.prompt
    if turn.prompt[: len(before.conversation)] == before.conversation:
        return turn.prompt[len(before.conversation) :]
    last = max((n for n, message in enumerate(turn.prompt) if message["role"] in ("assistant", "tool")), default=-1)
    return tuple(message for message in turn.prompt[last + 1 :] if message not in before.results)


def _calls(turn: Turn, tool_calls: Sequence[Any]) -> Iterator[Call]:
    ids = [str(call["id"]) for call in tool_calls] if len(tool_calls) == len(turn.step.actions) else []
    observed = chain(turn.step.observations, repeat(NOT_CARRIED_OUT))
    for number, (action, seen) in enumerate(zip(turn.step.actions, observed, strict=False)):
        name, arguments = as_call(action)
        own_id = f"call_{turn.node}_{turn.number}_{number}"
        yield Call(ids[number] if ids else own_id, name, loads(arguments), action, seen)
