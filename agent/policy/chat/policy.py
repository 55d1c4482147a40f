"""A chat model with tools as a policy: one answer is one turn, and the conversation continues until it submits."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, Literal

from agent.actions import RunTests, Submit
from agent.budget import Usage
from agent.errors import PolicyError, TooLong, ToolsRefused
from agent.models import Ask, Completion, Message, Model
from agent.models.conversing import converse
from agent.policy import Position, Proposal
from agent.policy.chat.briefing import (
    TURNS,
    opinion,
    remembered,
    repeating,
    situation,
    turns_left,
    version,
    wanted_strategy,
)
from agent.policy.chat.conversation import BYTES_PER_TOKEN, Conversation
from agent.policy.chat.dialects import NATIVE, TEXT, ParsedReply, ToolDialect
from agent.policy.chat.plan_tree import Way, carried_out, merged, place_of, way
from agent.policy.chat.plans import MOST_PLANS, Plan, drawn, plan_of, read_plans, telling, wanted_plans
from agent.policy.chat.priors import briefed
from agent.policy.chat.repeats import times
from agent.policy.chat.transcript import pack
from agent.policy.chat.variation import variation
from agent.run.tree.tree import Step

__all__ = ["ChatPolicy"]

log = logging.getLogger(__name__)

LABEL_CHARS = 80
TURNS_USED_UP = "its turns were used up"
LEAST_CONTEXT = 2_000
"""Tokens: the prompts alone take about so many."""
BRIEFING_SHARE = 0.2
"""Of the context, for what earlier waves have learned."""
MEMORY_SHARE = 0.1
"""Of the context, for what earlier runs have learned."""
SHORTENINGS = 4
"""How often a conversation that is too long for the model is cut to half before the turn is given up."""


class _NeverCalled(PolicyError):
    """A model that is given tools does not call any."""

    def __init__(self, message: str, cost: Usage) -> None:
        super().__init__(message)
        self.cost = cost


@dataclass(frozen=True, slots=True)
class _Answer:
    """The first answer that can be read, what it and those before it cost, and the turns told without their results."""

    heard: ParsedReply
    likelihood: float
    usage: Usage
    left_out: int


class _Chosen:
    """The form in which a model is spoken to: a fact about its server, which its answers show."""

    def __init__(self) -> None:
        self.form = NATIVE
        self.proven = False


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """Shows a model the branch that leads to a node and takes its tool calls for actions.

    `Proposal.message` is the turn as `agent.policy.chat.transcript` packs it, its prior how likely it was. What cannot
    be read is answered with how to correct it; it is paid for, and forgotten once the model has corrected it.
    """

    model: Model
    max_turns: int = TURNS
    """Turns of a conversation, after which it ends although nothing was submitted; at least 1. The model is told."""
    max_turns_per_node: int = 25
    """Turns after which a state is measured and kept although the model has not asked for it. It is not told, and its
    conversation continues."""
    turn_growth: float = 1.0
    """At least 1: each edit deeper, a state may take so many times as many turns. Above 1 the model is told to think
    again at each measured state at which its line branches off: a ladder of budgets b, b * g, b * g ** 2, as IDSampling
    deepens them, which ends at the first state that is solved."""
    max_mends: int = 3
    """Unreadable answers in a row that are put up with."""

    tool_calls: Literal["auto", "native", "text"] = "auto"
    """`native`: as the provider's interface has them; `text`: in tags in what the model says
    (`agent.policy.chat.tagged`); `auto`: native, and text from the moment when the server refuses tools or the model
    turns out not to call any."""
    context_tokens: int | None = None
    """What the model can read at most, question and answer; None: not known, and found out when it refuses."""
    max_repeats: int = 4
    """At least 2: a conversation in which the same was done with the same results so many times in a row ends there.
    The model is told before."""
    angles: bool = False
    """The second child of a node and those after it are told to begin in other ways (`agent.policy.chat.variation`)."""
    temperatures: Sequence[float] = ()
    """Of the first child of a node, the second and so on, the last one for all that follow; none: the model's own."""
    plans: int = 0
    """From 0 to 20: so many plans are drawn by one call before anything is changed, and the n-th child of the root is
    told to follow the n-th of them, round and round (`agent.policy.chat.plans`). The call is nobody's turn. A later
    wave, which knows more, is told none of them. 0: none."""
    plan_tree: bool = False
    """Plans that begin with the same steps are one way as far as they do, each step a state of its own
    (`agent.policy.chat.plan_tree`): for a search that goes back, as `linear` with `backtrack`."""
    _chosen: _Chosen = field(default_factory=_Chosen, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_turns < 1 or self.max_turns_per_node < 1 or self.max_mends < 0:
            raise ValueError("max_turns and max_turns_per_node have to be at least 1, and max_mends at least 0")
        if not 1 <= self.turn_growth <= 10:
            raise ValueError(f"turn_growth={self.turn_growth}: give a number from 1 to 10")
        if self.tool_calls not in ("auto", "native", "text"):
            raise ValueError(f"tool_calls={self.tool_calls!r}: give auto, native or text")
        if self.context_tokens is not None and self.context_tokens < LEAST_CONTEXT:
            raise ValueError(f"context_tokens={self.context_tokens}: give at least {LEAST_CONTEXT}")
        if self.max_repeats < 2:
            raise ValueError(f"max_repeats={self.max_repeats}: give at least 2")
        if not all(0 <= each <= 2 for each in self.temperatures):
            raise ValueError(f"temperatures={self.temperatures}: give numbers from 0 to 2")
        if type(self.plans) is not int or not 0 <= self.plans <= MOST_PLANS:
            raise ValueError(f"plans={self.plans!r}: give a whole number from 0 to {MOST_PLANS}")
        if self.plan_tree and not self.plans:
            raise ValueError("plan_tree merges plans, and plans=0 draws none: say how many to draw")
        self._chosen.form = TEXT if self.tool_calls == "text" else NATIVE
        self._chosen.proven = self.tool_calls != "auto"

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
        taken = _turns(position)
        repeats, left = times(taken), self.max_turns - len(taken)
        if repeats >= self.max_repeats:
            return Proposal((), label="did the same again and again", line_end="it did the same again and again")
        if left <= 0:
            return Proposal((), label="used up its turns", line_end=TURNS_USED_UP)
        seed = rng.getrandbits(31)
        step = self._way(position, seed)
        if step is not None and step.branch is None:
            return Proposal((), label="no step of the plans is left here")
        repeated = repeating(repeats, last=repeats + 1 >= self.max_repeats) if repeats > 1 else []
        given = [*repeated, *turns_left(left), *self._given(position, seed, step)]
        answer = carried_out(step, seed, partial(self._answer, position, given))
        turns, actions = len(position.steps) + 1, answer.heard.actions
        final = turns >= self.turns(len(position.path) - 1) or any(isinstance(a, (RunTests, Submit)) for a in actions)
        line_end = TURNS_USED_UP if left == 1 else ""
        return Proposal(
            actions=actions,
            message=pack(given, answer.heard.message, answer.left_out, step.place if step else ()),
            prior=answer.likelihood,
            label=" ".join(answer.heard.said.split())[:LABEL_CHARS],
            usage=answer.usage,
            final=final or bool(line_end),
            line_end=line_end,
        )

    def turns(self, depth: int) -> int:
        """The most turns that an expansion of a state so many edits below the root may take."""
        return int(self.max_turns_per_node * self.turn_growth**depth)

    def _given(self, position: Position, seed: int, step: Way | None) -> list[Message]:
        """What the model is told before the first turn from a state at which its line of work begins or branches off,
        or where the next step of a plan follows."""
        if position.steps:
            return []
        if position.continues and step is None:
            return opinion(position)
        plan, fresh = (None, step is not None) if self.plan_tree else self._plan(position, seed)
        varied = variation(position) if self.angles and not fresh else None
        followed = telling(plan, first=fresh) if plan else step.told() if step else ""
        return [
            *self._remembered(position),
            *self._briefed(position),
            *situation(position, reflect=self.turn_growth > 1, variation=varied, plan=followed),
        ]

    def _remembered(self, position: Position) -> list[Message]:
        """What is known of repairs of other issues; in a short context, less of it."""
        return remembered(position, self._room(MEMORY_SHARE))

    def _briefed(self, position: Position) -> list[Message]:
        """What earlier waves have learned; in a short context, less of it."""
        return briefed(position, self._room(BRIEFING_SHARE))

    def _room(self, share: float) -> int | None:
        """Bytes of a share of what the model can read, where that is known."""
        return None if self.context_tokens is None else int(self.context_tokens * share * BYTES_PER_TOKEN)

    def _plan(self, position: Position, seed: int) -> tuple[Plan | None, bool]:
        """The plan that a child of the root is to follow, and whether no other was to."""
        if not self.plans or len(position.path) > 1 or position.hint or position.briefing:
            return None, False
        return plan_of(position, self._plans(position, seed))

    def _way(self, position: Position, seed: int) -> Way | None:
        """What is next on the tree of plans, at the first turn of an expansion that is on it."""
        if not (self.plans and self.plan_tree) or position.steps:
            return None
        place = place_of(position, self.policy_id)
        return None if place is None else way(position, place, merged(self._plans(position, seed)))

    def _plans(self, position: Position, seed: int) -> list[Plan]:
        return drawn(position, self.model, partial(self._draw_plans, position, seed))

    def _draw_plans(self, position: Position, seed: int) -> list[Plan]:
        wanted = wanted_plans(self.plans, merged=self.plan_tree)
        talk = Conversation(position, self._chosen.form, wanted, self.context_tokens)
        read = partial(read_plans, most=self.plans)
        return converse(position.ask, self.model, talk.messages(), read, self.max_mends, seed)

    def _sampling(self, position: Position, seed: int) -> dict[str, Any]:
        if not self.temperatures:
            return {"seed": seed}
        return {"seed": seed, "temperature": self.temperatures[min(position.index, len(self.temperatures) - 1)]}

    def _propose_strategy(self, position: Position, seed: int) -> Proposal:
        """Words, which the nodes below it are shown. The model is given no tools."""
        given = [*self._remembered(position), *self._briefed(position), *wanted_strategy(position)]
        talk = Conversation(position, self._chosen.form, given, self.context_tokens)
        answer = position.ask(self.model, talk.messages(), **self._sampling(position, seed))
        if not answer.text.strip():
            raise PolicyError(f"{self.model.name} was asked for a strategy in words and said nothing")
        said = {"role": "assistant", "content": answer.text}
        label = f"strategy: {answer.text.strip().splitlines()[0][:LABEL_CHARS]}"
        return Proposal((), pack(given, said), label=label, usage=answer.usage)

    def _answer(self, position: Position, given: Sequence[Message], seed: int) -> _Answer:
        try:
            answer = self._ask(position, given, self._chosen.form, seed)
        except (ToolsRefused, _NeverCalled) as why:
            if self._chosen.proven:
                raise
            log.warning("the tools are described to %s in words from now on: %s", self.model.name, why)
            self._chosen.form, self._chosen.proven = TEXT, True
            answer = self._ask(position, given, TEXT, seed)
            if isinstance(why, _NeverCalled):
                answer = replace(answer, usage=answer.usage + why.cost)
        self._chosen.proven = True
        return answer

    def _ask(self, position: Position, given: Sequence[Message], form: ToolDialect, seed: int) -> _Answer:
        talk = Conversation(position, form, given, self.context_tokens, self.max_turns)
        usage, mends, called = Usage(), list[Message](), False
        for _ in range(self.max_mends + 1):
            answer = self._complete(position.ask, talk, mends, self._sampling(position, seed))
            usage += answer.usage
            heard = form.hear(answer)
            if heard.readable:
                return _Answer(heard, answer.likelihood, usage, talk.left_out)
            called = called or bool(heard.problems)
            mends += form.mend(heard, cut_off=answer.finish_reason == "length")
        problem = next(filter(None, heard.problems), "no tool was called")
        gave = f"{self.model.name} gave {self.max_mends + 1} answers in a row that cannot be read"
        why = f"{gave}; the last problem: {problem}"
        raise PolicyError(why) if called else _NeverCalled(why, usage)

    def _complete(
        self, ask: Ask, talk: Conversation, mends: Sequence[Message], sampling: Mapping[str, Any]
    ) -> Completion:
        """An answer; old results are left out until the model can read the conversation."""
        for _ in range(SHORTENINGS):
            try:
                return ask(self.model, talk.messages(mends), talk.tools(), **sampling)
            except TooLong as refusal:
                if not talk.shorten():
                    raise
                log.info("the first %d turns are told without their results: %s", talk.left_out, refusal)
        return ask(self.model, talk.messages(mends), talk.tools(), **sampling)


def _turns(position: Position) -> list[Step]:
    """All of the branch so far."""
    return [step for node in position.path for step in node.steps] + list(position.steps)
