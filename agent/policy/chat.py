"""A chat model with tools as a policy: one answer is one turn, and a run of the tests ends a row of turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from agent.actions import Action, BadCall, Edit, RunTests, Submit, Write, parse, schema
from agent.budget import Usage
from agent.errors import PolicyError
from agent.models import Ask, Completion, Message, Model
from agent.policy import Position, Proposal
from agent.policy.briefing import opening, situation, version, wanted_strategy
from agent.policy.transcript import branch, pack
from agent.prompts import render

__all__ = ["ChatPolicy"]

LABEL_CHARS = 80


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """Shows a model the branch that leads to a node and takes its tool calls for actions.

    `Proposal.message` is the turn as `agent.policy.transcript` packs it. An answer that cannot be read is answered with
    how to mend it; it is paid for, and forgotten once the model has mended it.
    """

    model: Model
    max_turns_per_node: int = 25
    """Turns, from the root, after which a state is measured although the model has not asked for it."""
    turn_growth: float = 1.0
    """At least 1: each edit deeper, a state may take so many times as many turns. Above 1 the model is told to think
    again at each measured state that it goes on from: a ladder of budgets b, b * g, b * g ** 2, as IDSampling deepens
    them, which ends at the first state that is solved."""
    max_mends: int = 3
    """Unreadable answers in a row that are put up with."""

    def __post_init__(self) -> None:
        if self.max_turns_per_node < 1 or self.max_mends < 0:
            raise ValueError("max_turns_per_node has to be at least 1 and max_mends at least 0")
        if not 1 <= self.turn_growth <= 10:
            raise ValueError(f"turn_growth={self.turn_growth}: give a number from 1 to 10")

    @property
    def policy_id(self) -> str:
        """The model's name and the version of the prompts."""
        return f"chat/{self.model.name}@{version()}"

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The model's next turn.

        Raises:
            agent.errors.PolicyError: its answers cannot be read, or the conversation is too long for it.
            agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
        """
        if position.kind == "strategy":
            return self._propose_strategy(position, rng.getrandbits(31))
        given = [] if position.steps else situation(position, reflect=self.turn_growth > 1)
        conversation = [*opening(position), *branch(position.path, position.steps), *given]
        answer, actions, usage = self._ask(conversation, position.ask, rng.getrandbits(31))
        turns = len(position.steps) + 1
        final = turns >= self.turns(len(position.path) - 1) or any(isinstance(a, (RunTests, Submit)) for a in actions)
        earlier = (action for step in position.steps for action in step.actions)
        return Proposal(
            actions=actions,
            message=pack(given, answer.message),
            label=_label((*earlier, *actions), answer.text),
            usage=usage,
            final=final,
        )

    def turns(self, depth: int) -> int:
        """The most turns that an expansion of a state so many edits below the root may take."""
        return int(self.max_turns_per_node * self.turn_growth**depth)

    def _propose_strategy(self, position: Position, seed: int) -> Proposal:
        """Words, which the nodes below it are shown. The model is given no tools."""
        given = wanted_strategy(position)
        answer = position.ask(self.model, [*opening(position), *branch(position.path, ()), *given], seed=seed)
        if not answer.text.strip():
            raise PolicyError(f"{self.model.name} was asked for a strategy in words and said nothing")
        said = {"role": "assistant", "content": answer.text}
        label = f"strategy: {answer.text.strip().splitlines()[0][:LABEL_CHARS]}"
        return Proposal((), pack(given, said), label=label, usage=answer.usage)

    def _ask(
        self, conversation: Sequence[Message], ask: Ask, seed: int
    ) -> tuple[Completion, tuple[Action, ...], Usage]:
        """The first answer that can be read, its actions, and what it and those before it cost."""
        messages, usage, mends = list(conversation), Usage(), list[Message]()
        for _ in range(self.max_mends + 1):
            answer = ask(self.model, [*messages, *mends], schema(), seed=seed)
            usage += answer.usage
            actions, problems = _read(answer)
            if actions and not any(problems):
                return answer, actions, usage
            mends += _mend(answer, problems)
        raise PolicyError(
            f"{self.model.name} gave {self.max_mends + 1} answers in a row that cannot be read; the last problem: "
            f"{next(filter(None, problems), 'no tool was called')}"
        )


def _read(answer: Completion) -> tuple[tuple[Action, ...], list[str]]:
    """The actions of an answer's calls, and for each call what is wrong with it (empty: nothing)."""
    actions, problems = list[Action](), list[str]()
    for call in answer.tool_calls:
        try:
            actions.append(parse(call.name, call.arguments))
            problems.append("")
        except BadCall as problem:
            problems.append(str(problem))
    return tuple(actions), problems


def _mend(answer: Completion, problems: Sequence[str]) -> list[Message]:
    """The unreadable answer and the messages that say how to mend it. None of its calls is carried out."""
    cut_off = answer.finish_reason == "length"
    if not problems:
        said = {"role": "assistant", "content": answer.text or "(nothing)"}
        return [said, {"role": "user", "content": render("chat_mend", cut_off=cut_off)}]
    message = answer.message
    message["tool_calls"] = [_readable(call) for call in message["tool_calls"]]
    results = (problem or "not carried out, because another call of this answer cannot be read" for problem in problems)
    hint = " Your answer was cut off because it was too long: take smaller steps." if cut_off else ""
    return [
        message,
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": f"Error: {result}.{hint}"}
            for call, result in zip(message["tool_calls"], results, strict=True)
        ),
    ]


def _readable(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call that servers accept: they refuse a conversation in which arguments are not a JSON object."""
    function = call["function"]
    try:
        fine = isinstance(json.loads(function["arguments"]), dict)
    except (ValueError, RecursionError):
        fine = False
    return dict(call) if fine else {**call, "function": {**function, "arguments": "{}"}}


def _label(actions: Sequence[Action], text: str) -> str:
    """A few words for people and siblings: which files were changed, and how the model put it."""
    paths = dict.fromkeys(action.path for action in actions if isinstance(action, (Edit, Write)))
    changed = f"changed {', '.join(paths)}" if paths else "changed nothing"
    said = " ".join(text.split())[:LABEL_CHARS]
    return f"{changed}: {said}" if said else changed
