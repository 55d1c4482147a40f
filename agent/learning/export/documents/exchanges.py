"""Exchanges: the turns of a path as somebody would read them: what was given, what was answered, done and seen."""

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

__all__ = ["Call", "Exchange", "exchanges", "patch_of", "winner"]

NOT_CARRIED_OUT = Observation("", ok=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One action and what was seen of it."""

    id: str
    name: str
    arguments: dict[str, Any]
    action: Action
    seen: Observation


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn."""

    turn: Turn
    given: tuple[Message, ...]
    """What its prompt says that was not said before."""
    calls: tuple[Call, ...]
    native: bool
    """Whether the answer calls tools in its provider's form; else the calls are in its text."""


def exchanges(turns: Sequence[Turn]) -> Iterator[Exchange]:
    """The turns of a path, in order."""
    before: Turn | None = None
    for turn in turns:
        named = turn.answer.get("tool_calls") or ()
        yield Exchange(turn, _given(turn, before), tuple(_calls(turn, named)), bool(named))
        before = turn


def winner(run: Run) -> NodeId | None:
    """The node whose patch the run's answer is; without one, where the best rollout ended. None: nothing was tried."""
    if run.ended is not None and run.ended.best is not None:
        return run.ended.best
    found = max(run.rollouts(), key=lambda each: (run.tree[each.best].value, -each.leaf), default=None)
    return found.best if found else None


def patch_of(run: Run) -> str:
    """The run's answer; empty without one."""
    blob = run.ended.patch_blob if run.ended else None
    return run.journal.get_blob(blob).decode(errors="replace") if blob else ""


def _given(turn: Turn, before: Turn | None) -> tuple[Message, ...]:
    """Where old results were left out meanwhile, the prompt does not go on from what was said: then what follows the
    last answer and its results."""
    if before is None:
        return turn.prompt
    if turn.prompt[: len(before.told)] == before.told:
        return turn.prompt[len(before.told) :]
    last = max((n for n, each in enumerate(turn.prompt) if each["role"] in ("assistant", "tool")), default=-1)
    return tuple(message for message in turn.prompt[last + 1 :] if message not in before.results)


def _calls(turn: Turn, named: Sequence[Any]) -> Iterator[Call]:
    ids = [str(call["id"]) for call in named] if len(named) == len(turn.step.actions) else []
    observed = chain(turn.step.observations, repeat(NOT_CARRIED_OUT))
    for number, (action, seen) in enumerate(zip(turn.step.actions, observed, strict=False)):
        name, arguments = as_call(action)
        made = f"call_{turn.node}_{turn.number}_{number}"
        yield Call(ids[number] if ids else made, name, loads(arguments), action, seen)
