"""The turns that led to each node: each answer with the prompt that it actually answered.

Turns without a model (those of `mutate`) are written as a conversation that a model might have had: the same opening,
the edits as tool calls, and the measurements in between.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from agent.actions import RunTests
from agent.models import Message
from agent.models.wire import sendable
from agent.parsing import loads
from agent.policy.chat.conventions import CONVENTIONS, from_note
from agent.policy.chat.dialects import NATIVE, TEXT, as_server_accepts
from agent.policy.chat.opening import introduction, results_message
from agent.policy.chat.transcript import unpack
from agent.run.action_log import task_of
from agent.run.events import Asked
from agent.run.message_store import digest_of
from agent.run.run import Run
from agent.run.tree.node import NodeId, Step
from agent.run.tree.tree import Tree

MERGE = "a merge of two branches"
"""Why a leaf has no row: it is not the outcome of its turns alone."""
WORKDIR = "/workspace"
"""The working directory, if a task names no mount point."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer and its results. Messages are in the form of chat templates: call arguments are objects."""

    node: NodeId
    number: int
    """The position in its node, from 0."""
    prompt: tuple[Message, ...]
    answer: Message
    results: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    """The tools offered to the model."""
    step: Step
    asked: Asked | None
    """The recorded call; None: no model took the turn, or the journal is too old to record it."""

    @property
    def failed(self) -> bool:
        """Whether one of its calls failed. Failing tests are a normal result."""
        pairs = zip(self.step.actions, self.step.observations, strict=False)
        return any(not seen.ok and not isinstance(action, RunTests) for action, seen in pairs)

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The conversation after the turn."""
        return (*self.prompt, self.answer, *self.results)

    @property
    def digest(self) -> str:
        """The digest of the prompt and the tools."""
        return self.asked.conversation.digest if self.asked else digest_of([list(self.tools), *self.prompt])

    def same_answer(self, other: Turn) -> bool:
        """Whether it has the same text and calls as another turn, apart from call ids."""
        return _text_and_calls(self.answer) == _text_and_calls(other.answer)


class Turns:
    """The turns of a run, computed on demand."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._made: dict[NodeId, tuple[Turn, ...]] = {}
        self._asked = _answers(run)
        self._opening: list[Message] = []

    def of(self, node_id: NodeId) -> tuple[Turn, ...]:
        """The turns that led from a node's parent to it; none for the root and for merged branches."""
        if node_id not in self._made:
            turns: list[Turn] = []
            for number, step in enumerate(self._run.tree[node_id].steps):
                turns.append(self._turn(node_id, number, step, turns[-1] if turns else self._last_above(node_id)))
            self._made[node_id] = tuple(turns)
        return self._made[node_id]

    def path(self, node_id: NodeId) -> list[Turn]:
        """All turns from the root to a node."""
        return [turn for node in self._run.tree.path(node_id) for turn in self.of(node.id)]

    def _last_above(self, node_id: NodeId) -> Turn | None:
        ancestor = self._run.tree.parent(node_id)
        while ancestor is not None and not self.of(ancestor.id):
            ancestor = self._run.tree.parent(ancestor.id)
        return self.of(ancestor.id)[-1] if ancestor else None

    def _turn(self, node_id: NodeId, number: int, step: Step, before: Turn | None) -> Turn:
        asked, stored = self._asked.get((node_id, number)), unpack(step.message)
        if asked is not None:
            tools, *prompt = self._run.conversations.whole(asked.conversation.digest)
        else:
            tools, prompt = NATIVE.tools(), [*self._before(before), *self._given(node_id, number, stored)]
        answer = stored["answer"] if stored else _acted(step, prompt)
        results = results_after(answer, step, [observation.text for observation in step.observations])
        return Turn(node_id, number, as_template(prompt), as_template([answer])[0], results, tuple(tools), step, asked)

    def _before(self, before: Turn | None) -> Sequence[Message]:
        if before is not None:
            return before.conversation
        if not self._opening and self._run.started is not None:
            task, root = task_of(self._run), self._run.tree.root
            conventions = from_note(self._run.note(root.id, CONVENTIONS))
            workdir = task.workspace.mount or WORKDIR
            self._opening = introduction(task, root.report, workdir, conventions=conventions)
        return self._opening

    def _given(self, node_id: NodeId, number: int, stored: Mapping[str, Any] | None) -> Sequence[Message]:
        if stored is not None:
            messages: Sequence[Message] = stored["given"]
            return messages
        parent = self._run.tree.parent(node_id)
        return [results_message(parent)] if number == 0 and parent is not None and parent.parents else []


def results_after(answer: Message, step: Step, seen: Sequence[str]) -> tuple[Message, ...]:
    """The messages with the results of a turn's calls; none if some calls have no result."""
    if not step.actions or len(seen) != len(step.actions):
        return ()
    dialect = NATIVE if NATIVE.uses_dialect(answer) else TEXT
    return as_template(dialect.results(answer, step.actions, seen))


def _acted(step: Step, prompt: Sequence[Message]) -> Message:
    """A turn of another policy as a chat answer. Siblings get the same call ids."""
    return NATIVE.render_turn(
        str(sum(message["role"] == "assistant" for message in prompt)), step.message, step.actions
    )


def _answers(run: Run) -> dict[tuple[NodeId, int], Asked]:
    """The recorded call of each turn. Among calls with the same answer, prefer those whose prompt contains the messages
    given to the turn, then those whose prompt shares most with that of the turn before, then the oldest."""
    waiting: defaultdict[NodeId | None, list[Asked]] = defaultdict(list)
    for asked in run.asked:
        if asked.purpose in ("policy", ""):
            waiting[asked.node].append(asked)
    calls: dict[tuple[NodeId, int], Asked] = {}
    for node in run.tree:
        names: Sequence[str] = ()
        for number, step in enumerate(node.steps):
            candidates = [asked for asked in waiting[node.parents[0]] if _is_of(asked, step)]
            if not candidates:
                continue
            best = max(candidates, key=lambda asked: _likeness(run, asked, step, names))
            waiting[node.parents[0]].remove(best)
            calls[node.id, number] = best
            names = run.conversations.names(best.conversation.digest)
    return calls


def _is_of(asked: Asked, step: Step) -> bool:
    """Whether the call's answer is the one that the turn stores."""
    stored = unpack(step.message)
    if stored is None:
        return False
    answer, recorded = stored["answer"], as_server_accepts(asked.answer.message)
    same_calls = "tool_calls" not in answer or answer["tool_calls"] == recorded.get("tool_calls")
    return same_calls and answer.get("content") in (recorded.get("content"), asked.answer.text)


def _likeness(run: Run, asked: Asked, step: Step, before: Sequence[str]) -> tuple[bool, int]:
    stored = unpack(step.message) or {"given": []}
    names = run.conversations.names(asked.conversation.digest)
    texts = [str(run.conversations.value(name).get("content")) for name in names[1:]]
    has_messages = all(any(str(message["content"]) in text for text in texts) for message in stored["given"])
    return has_messages, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(names, before, strict=False)))


def as_template(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages in the form of chat templates: call arguments are objects, and reasoning that only its own model can
    read is removed."""
    readable = sendable(messages, "")
    return tuple(_with_objects(message) if message.get("tool_calls") else message for message in readable)


def _with_objects(message: Message) -> Message:
    calls = [{**call, "function": _with_object(call["function"])} for call in message["tool_calls"]]
    return {**message, "content": message.get("content") or "", "tool_calls": calls}


def _with_object(function: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments = function["arguments"]
    return {**function, "arguments": loads(arguments or "{}") if isinstance(arguments, str) else arguments}


def as_sent(message: Message) -> dict[str, Any]:
    """The message of a chat template with call arguments as text, as they were sent."""
    if not message.get("tool_calls"):
        return dict(message)
    calls = [{**call, "function": _with_text(call["function"])} for call in message["tool_calls"]]
    return {**message, "tool_calls": calls}


def _with_text(function: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**function, "arguments": json.dumps(function["arguments"])}


def _text_and_calls(message: Message) -> tuple[object, ...]:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return message.get("content") or "", [(call["name"], call["arguments"]) for call in calls]


def bare(message: Message) -> Message:
    """The message without call ids, which a server draws at random; for comparisons."""
    kept = {key: value for key, value in message.items() if key != "tool_call_id"}
    return kept | ({"tool_calls": [call["function"] for call in kept["tool_calls"]]} if kept.get("tool_calls") else {})


def shared(one: Sequence[Message], other: Sequence[Message]) -> Sequence[Message]:
    """The common beginning of two conversations. Call ids are ignored."""
    alike = takewhile(lambda pair: bare(pair[0]) == bare(pair[1]), zip(one, other, strict=False))
    return [mine for mine, _ in alike]


def answer_key(turn: Turn) -> str:
    """A key of an answer and its prompt that ignores call ids."""
    return digest_of([bare(message) for message in (*turn.prompt, turn.answer)])


def is_merge(tree: Tree, leaf: NodeId) -> bool:
    """Whether a state on the path to a leaf was made without turns, from two branches or by a search elsewhere, so that
    the turns of the path alone do not lead to the leaf."""
    return any(not node.steps for node in tree.path(leaf)[1:])
