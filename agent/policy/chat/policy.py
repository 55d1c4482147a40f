"""The chat policy: a model with tools. One answer is one turn; the conversation continues until the model submits."""

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
from agent.models.answers import Abstained, ask_until_readable
from agent.policy import Position, Proposal
from agent.policy.chat.conversation import Conversation, context_bytes
from agent.policy.chat.dialects import NATIVE, TEXT, ParsedReply, ToolDialect
from agent.policy.chat.earlier_rounds import briefed
from agent.policy.chat.opening import (
    TURNS,
    opinion,
    remembered,
    repeating,
    situation,
    turns_left,
    version,
    wanted_strategy,
)
from agent.policy.chat.plan_tree import PlanStep, carried_out, merged, next_step, plan_path_of
from agent.policy.chat.plans import MOST_PLANS, AttemptPlan, plan_of, read_plans, telling, wanted_plans
from agent.policy.chat.repeats import times
from agent.policy.chat.transcript import pack
from agent.policy.chat.variation import variation

log = logging.getLogger(__name__)

LABEL_CHARS = 80
TURNS_USED_UP = "its turns were used up"
LEAST_CONTEXT = 2_000
"""The smallest context, in tokens, that can be set: about the size of the prompts alone."""
BRIEFING_SHARE = 0.2
"""The share of the context for lessons from earlier rounds."""
MEMORY_SHARE = 0.1
"""The share of the context for lessons from earlier runs."""
SHORTENINGS = 4
"""How many times a conversation that is too long for the model is halved before the turn fails."""


class _NeverCalled(PolicyError):
    """A model was offered tools and called none."""

    def __init__(self, message: str, cost: Usage) -> None:
        super().__init__(message)
        self.cost = cost


@dataclass(frozen=True, slots=True)
class _Answer:
    """The first readable answer, the cost up to it, and how many turns were sent without their results."""

    reply: ParsedReply
    likelihood: float
    usage: Usage
    left_out: int


class _DialectChoice:
    """The dialect for a model, and whether its answers have proven that its server supports it."""

    def __init__(self) -> None:
        self.dialect = NATIVE
        self.proven = False


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """Shows a model the branch that leads to a node, and turns its tool calls into actions.

    `Proposal.message` is the turn as `agent.policy.chat.transcript` packs it; its prior is the answer's likelihood.
    The model is told how to correct an unreadable answer. Such an answer counts in the cost, and is removed from the
    conversation once it is corrected.
    """

    model: Model
    max_turns: int = TURNS
    """At least 1: turns after which a conversation ends even if nothing was submitted. The model knows this limit."""
    max_turns_per_node: int = 25
    """Turns after which a state is measured and kept, without telling the model; its conversation continues."""
    turn_growth: float = 1.0
    """At least 1: the factor by which `max_turns_per_node` grows with each level of the tree. Above 1, the model is
    asked to think again at each measured state where its line branches off. The turn budgets are then b, b * g,
    b * g ** 2 and so on, as in IDSampling, up to the first solved state."""
    max_retries: int = 3
    """How many unreadable answers in a row are sent back for correction."""

    tool_calls: Literal["auto", "native", "text"] = "auto"
    """`native`: through the provider's API; `text`: as tags in the model's text (`agent.policy.chat.tagged`); `auto`:
    native, until the server refuses tools or the model turns out not to call any; from then on text."""
    context_tokens: int | None = None
    """The model's context, question and answer; None: unknown until a request is refused as too long."""
    max_repeats: int = 4
    """At least 2: how often in a row a turn may be repeated with the same results before the conversation ends. The
    model is warned first."""
    angles: bool = False
    """Whether a node's children after the first are told to begin in different ways (`agent.policy.chat.variation`)."""
    temperatures: Sequence[float] = ()
    """The temperatures of a node's first child, second child and so on; the last one holds for all further children.
    Empty: the model's own temperature."""
    plans: int = 0
    """From 0 to 20: how many plans are requested in one call before anything is changed (`agent.policy.chat.plans`).
    The n-th child of the root follows the n-th plan; after the last plan, the first is used again. The call does not
    count as a turn. Only the first round has plans, since later rounds know more."""
    plan_tree: bool = False
    """Whether plans that begin with the same steps share them, each step a state of its own
    (`agent.policy.chat.plan_tree`): for a search that backtracks, such as `linear` with `backtrack`."""
    _chosen: _DialectChoice = field(default_factory=_DialectChoice, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_turns < 1 or self.max_turns_per_node < 1 or self.max_retries < 0:
            raise ValueError("max_turns and max_turns_per_node have to be at least 1, and max_retries at least 0")
        if not 1 <= self.turn_growth <= 10:
            raise ValueError(f"turn_growth={self.turn_growth}: give a number from 1 to 10")
        if self.tool_calls not in ("auto", "native", "text"):
            raise ValueError(f"tool_calls={self.tool_calls!r}: give auto, native or text")
        if self.context_tokens is not None and self.context_tokens < LEAST_CONTEXT:
            raise ValueError(f"context_tokens={self.context_tokens}: give at least {LEAST_CONTEXT}")
        if self.max_repeats < 2:
            raise ValueError(f"max_repeats={self.max_repeats}: give at least 2")
        if not all(0 <= temperature <= 2 for temperature in self.temperatures):
            raise ValueError(f"temperatures={self.temperatures}: give numbers from 0 to 2")
        if type(self.plans) is not int or not 0 <= self.plans <= MOST_PLANS:
            raise ValueError(f"plans={self.plans!r}: give a whole number from 0 to {MOST_PLANS}")
        if self.plan_tree and not self.plans:
            raise ValueError("plan_tree merges plans, but plans=0 draws none: set plans to at least 1")
        self._chosen.dialect = TEXT if self.tool_calls == "text" else NATIVE
        self._chosen.proven = self.tool_calls != "auto"

    @property
    def policy_id(self) -> str:
        """The model's name and the version of the prompts."""
        return f"chat/{self.model.name}@{version()}"

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The model's next turn.

        Raises:
            agent.errors.PolicyError: the model's answers cannot be read, or the conversation is too long for it.
            agent.errors.ModelError, agent.errors.ConfigError: the provider failed.
        """
        if position.kind == "strategy":
            return self._propose_strategy(position, _seed(position, rng))
        taken = [step for node in position.path for step in node.steps] + list(position.steps)
        repeats, left = times(taken), self.max_turns - len(taken)
        if repeats >= self.max_repeats:
            return Proposal((), label="did the same again and again", line_end="it did the same again and again")
        if left <= 0:
            return Proposal((), label="used up its turns", line_end=TURNS_USED_UP)
        seed = _seed(position, rng)
        step = self._plan_step(position, seed)
        if step is not None and step.branch is None:
            return Proposal((), label="no step of the plans is left here")
        warning = repeating(repeats, last=repeats + 1 >= self.max_repeats) if repeats > 1 else []
        request = [*warning, *turns_left(left), *self._request(position, seed, step)]
        answer = carried_out(step, seed, partial(self._answer, position, request))
        turns, actions = len(position.steps) + 1, answer.reply.actions
        final = turns >= self.turns(len(position.path) - 1) or any(isinstance(a, (RunTests, Submit)) for a in actions)
        line_end = TURNS_USED_UP if left == 1 else ""
        return Proposal(
            actions=actions,
            message=pack(request, answer.reply.message, answer.left_out, step.path if step else ()),
            prior=answer.likelihood,
            label=" ".join(answer.reply.text.split())[:LABEL_CHARS],
            usage=answer.usage,
            final=final or bool(line_end),
            line_end=line_end,
        )

    def turns(self, depth: int) -> int:
        """The most turns for one expansion of a state that is `depth` edits below the root."""
        return int(self.max_turns_per_node * self.turn_growth**depth)

    def _request(self, position: Position, seed: int, step: PlanStep | None) -> list[Message]:
        """The messages before the first turn of a line of work, of a branch of it, or of a plan's next step."""
        if position.steps:
            return []
        if position.continues and step is None:
            return opinion(position)
        plan, fresh = (None, step is not None) if self.plan_tree else self._plan(position, seed)
        varied = variation(position) if self.angles and not fresh else None
        plan_text = telling(plan, first=fresh) if plan else step.text() if step else ""
        return [
            *self._lessons(position),
            *situation(position, reflect=self.turn_growth > 1, variation=varied, plan=plan_text),
        ]

    def _lessons(self, position: Position) -> list[Message]:
        """Lessons from repairs of other issues and from earlier rounds; fewer in a short context."""
        return [
            *remembered(position, context_bytes(self.context_tokens, MEMORY_SHARE)),
            *briefed(position, context_bytes(self.context_tokens, BRIEFING_SHARE)),
        ]

    def _plan(self, position: Position, seed: int) -> tuple[AttemptPlan | None, bool]:
        """The plan for a child of the root, and whether it is the first child with that plan."""
        if not self.plans or len(position.path) > 1 or position.hint or position.briefing:
            return None, False
        return plan_of(position, self._plans(position, seed))

    def _plan_step(self, position: Position, seed: int) -> PlanStep | None:
        """The next step in the plan tree, at the first turn of an expansion inside of it."""
        if not (self.plans and self.plan_tree) or position.steps:
            return None
        path = plan_path_of(position, self.policy_id)
        return None if path is None else next_step(position, path, merged(self._plans(position, seed)))

    def _plans(self, position: Position, seed: int) -> list[AttemptPlan]:
        """The plans of a run, empty if none could be read. They are drawn at the first call; a failure is recorded
        too."""

        def find() -> dict[str, object]:
            request = wanted_plans(self.plans, merged=self.plan_tree)
            messages = self._conversation(position, request, self._chosen.dialect).messages()
            read = partial(read_plans, most=self.plans)
            try:
                return {"plans": ask_until_readable(position.ask, self.model, messages, read, self.max_retries, seed)}
            except (Abstained, PolicyError) as error:
                log.warning("the search continues without plans: %s", error)
                return {"plans": [], "problem": str(error)}

        plans: list[AttemptPlan] = position.memo(f"plans/{self.model.name}", find)["plans"]
        return plans

    def _sampling(self, position: Position, seed: int) -> dict[str, Any]:
        if not self.temperatures:
            return {"seed": seed}
        return {"seed": seed, "temperature": self.temperatures[min(position.index, len(self.temperatures) - 1)]}

    def _propose_strategy(self, position: Position, seed: int) -> Proposal:
        """A strategy in words, which the nodes below see. The model gets no tools."""
        request = [*self._lessons(position), *wanted_strategy(position)]
        messages = self._conversation(position, request, self._chosen.dialect).messages()
        answer = position.ask(self.model, messages, **self._sampling(position, seed))
        if not answer.text.strip():
            raise PolicyError(f"{self.model.name} was asked for a strategy in words and gave an empty answer")
        message = {"role": "assistant", "content": answer.text}
        label = f"strategy: {answer.text.strip().splitlines()[0][:LABEL_CHARS]}"
        return Proposal((), pack(request, message), label=label, usage=answer.usage)

    def _conversation(self, position: Position, request: Sequence[Message], dialect: ToolDialect) -> Conversation:
        return Conversation(position, dialect, request, self.context_tokens, self.max_turns)

    def _answer(self, position: Position, request: Sequence[Message], seed: int) -> _Answer:
        try:
            answer = self._ask(position, request, self._chosen.dialect, seed)
        except (ToolsRefused, _NeverCalled) as error:
            if self._chosen.proven:
                raise
            log.warning(
                "%s makes no native tool calls; calls are written as text from now on: %s", self.model.name, error
            )
            self._chosen.dialect, self._chosen.proven = TEXT, True
            answer = self._ask(position, request, TEXT, seed)
            if isinstance(error, _NeverCalled):
                answer = replace(answer, usage=answer.usage + error.cost)
        self._chosen.proven = True
        return answer

    def _ask(self, position: Position, request: Sequence[Message], dialect: ToolDialect, seed: int) -> _Answer:
        conversation = self._conversation(position, request, dialect)
        usage, corrections, called = Usage(), list[Message](), False
        for _ in range(self.max_retries + 1):
            answer = self._complete(position.ask, conversation, corrections, self._sampling(position, seed))
            usage += answer.usage
            reply = dialect.parse(answer)
            if reply.readable:
                return _Answer(reply, answer.likelihood, usage, conversation.left_out)
            called = called or bool(reply.problems)
            corrections += dialect.format_error(reply, cut_off=answer.finish_reason == "length")
        problem = next(filter(None, reply.problems), "no tool was called")
        count = f"{self.model.name} gave {self.max_retries + 1} answers in a row that cannot be read"
        message = f"{count}; the last problem: {problem}"
        raise PolicyError(message) if called else _NeverCalled(message, usage)

    def _complete(
        self, ask: Ask, conversation: Conversation, corrections: Sequence[Message], sampling: Mapping[str, Any]
    ) -> Completion:
        """An answer; old results are left out until the conversation fits the model's context."""
        for _ in range(SHORTENINGS):
            try:
                return ask(self.model, conversation.messages(corrections), conversation.tools(), **sampling)
            except TooLong as error:
                if not conversation.shorten():
                    raise
                log.info("the first %d turns are sent without their results: %s", conversation.left_out, error)
        return ask(self.model, conversation.messages(corrections), conversation.tools(), **sampling)


def _seed(position: Position, rng: Random) -> int:
    """The seed of a request, in 31 bits. It depends on the task as well: all searches of a batch have the same seed,
    and a server uses the same random numbers for equal seeds, whatever the prompt."""
    return Random(f"{rng.getrandbits(31)}/{position.task.id}").getrandbits(31)
