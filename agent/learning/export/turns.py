"""Turns: what was said at each node, with the prompt that each answer was really given to.

Turns that no model took (those of `mutate`) read as a conversation that a model might have had: the same opening, the
edits as calls of tools, and what was measured in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from agent.actions import RunTests
from agent.models import Message
from agent.models.wire import sendable
from agent.parsing import loads
from agent.policy.chat.briefing import introduction, measured
from agent.policy.chat.conventions import CONVENTIONS, from_note
from agent.policy.chat.dialects import NATIVE, TEXT, accepted
from agent.policy.chat.transcript import unpack
from agent.run.action_log import task_of
from agent.run.events import Asked
from agent.run.message_store import digest_of
from agent.run.run import Run
from agent.run.tree.node import NodeId, Step
from agent.run.tree.tree import Tree

__all__ = ["MERGE", "Turn", "Turns", "as_template", "bare", "is_merge", "said", "told_after"]

MERGE = "a merge of two branches"
"""Why a leaf has no row that shows it as the outcome of its turns."""
WORKDIR = "/workspace"
"""Of a task that does not say where its workspace is inside."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer, and what came of it. Messages are in the form of chat templates: arguments of calls are objects."""

    node: NodeId
    number: int
    """In its node, from 0."""
    prompt: tuple[Message, ...]
    answer: Message
    results: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    """Those that were offered."""
    step: Step
    asked: Asked | None
    """The recorded call; None: no model took the turn, or the journal is too old to say."""

    @property
    def failed(self) -> bool:
        """Whether a call of it failed. Tests that fail are a result like any other."""
        pairs = zip(self.step.actions, self.step.observations, strict=False)
        return any(not seen.ok and not isinstance(action, RunTests) for action, seen in pairs)

    @property
    def told(self) -> tuple[Message, ...]:
        """All that has been said when it is over."""
        return (*self.prompt, self.answer, *self.results)

    @property
    def digest(self) -> str:
        """Of the prompt and the tools."""
        return self.asked.conversation.digest if self.asked else digest_of([list(self.tools), *self.prompt])

    def says(self, other: Turn) -> bool:
        """Whether it has the same words and calls as another; the ids of the calls do not count."""
        return _said(self.answer) == _said(other.answer)


class Turns:
    """The turns of a run, made as they are asked for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._made: dict[NodeId, tuple[Turn, ...]] = {}
        self._asked = _answers(run)
        self._opening: list[Message] = []

    def of(self, node_id: NodeId) -> tuple[Turn, ...]:
        """The turns that led from a node's parent to it; none for the root and for merged branches."""
        if node_id not in self._made:
            made: list[Turn] = []
            for number, step in enumerate(self._run.tree[node_id].steps):
                made.append(self._turn(node_id, number, step, made[-1] if made else self._last_above(node_id)))
            self._made[node_id] = tuple(made)
        return self._made[node_id]

    def path(self, node_id: NodeId) -> list[Turn]:
        """All turns from the root to a node."""
        return [turn for node in self._run.tree.path(node_id) for turn in self.of(node.id)]

    def _last_above(self, node_id: NodeId) -> Turn | None:
        above = self._run.tree.parent(node_id)
        while above is not None and not self.of(above.id):
            above = self._run.tree.parent(above.id)
        return self.of(above.id)[-1] if above else None

    def _turn(self, node_id: NodeId, number: int, step: Step, before: Turn | None) -> Turn:
        asked, stored = self._asked.get((node_id, number)), unpack(step.message)
        if asked is not None:
            tools, *prompt = self._run.conversations.whole(asked.conversation.digest)
        else:
            tools, prompt = NATIVE.tools(), [*self._before(before), *self._given(node_id, number, stored)]
        answer = stored["answer"] if stored else _acted(step, prompt)
        done = told_after(answer, step, [observation.text for observation in step.observations])
        told, said = as_template(prompt), as_template([answer])[0]
        return Turn(node_id, number, told, said, done, tuple(tools), step, asked)

    def _before(self, before: Turn | None) -> Sequence[Message]:
        if before is not None:
            return before.told
        if not self._opening and self._run.started is not None:
            task, root = task_of(self._run), self._run.tree.root
            noted = from_note(self._run.note(root.id, CONVENTIONS))
            where = task.workspace.mount or WORKDIR
            self._opening = introduction(task, root.report, where, conventions=noted)
        return self._opening

    def _given(self, node_id: NodeId, number: int, stored: Mapping[str, Any] | None) -> Sequence[Message]:
        if stored is not None:
            given: Sequence[Message] = stored["given"]
            return given
        above = self._run.tree.parent(node_id)
        return [measured(above)] if number == 0 and above is not None and above.parents else []


def told_after(answer: Message, step: Step, seen: Sequence[str]) -> tuple[Message, ...]:
    """What follows the answer of a turn whose calls said this; nothing where some of them said nothing."""
    if not step.actions or len(seen) != len(step.actions):
        return ()
    form = NATIVE if NATIVE.uses_dialect(answer) else TEXT
    return as_template(form.results(answer, step.actions, seen))


def _acted(step: Step, prompt: Sequence[Message]) -> Message:
    """A turn that was not taken in chat, as if it had been. Siblings get the same ids of calls."""
    return NATIVE.render_turn(
        str(sum(message["role"] == "assistant" for message in prompt)), step.message, step.actions
    )


def _answers(run: Run) -> dict[tuple[NodeId, int], Asked]:
    """Which recorded call each turn is of. Of several with the same answer, the oldest that was told what the turn was
    and goes on as far as possible from the turn before it."""
    waiting: defaultdict[NodeId | None, list[Asked]] = defaultdict(list)
    for asked in run.asked:
        if asked.purpose in ("policy", ""):
            waiting[asked.node].append(asked)
    found: dict[tuple[NodeId, int], Asked] = {}
    for node in run.tree:
        names: Sequence[str] = ()
        for number, step in enumerate(node.steps):
            fits = [each for each in waiting[node.parents[0]] if _is_of(each, step)]
            if not fits:
                continue
            best = max(fits, key=lambda each: _likeness(run, each, step, names))
            waiting[node.parents[0]].remove(best)
            found[node.id, number] = best
            names = run.conversations.names(best.conversation.digest)
    return found


def _is_of(asked: Asked, step: Step) -> bool:
    """Whether the answer is the one that the turn stores."""
    stored = unpack(step.message)
    if stored is None:
        return False
    answer, said = stored["answer"], accepted(asked.answer.message)
    calls = "tool_calls" not in answer or answer["tool_calls"] == said.get("tool_calls")
    return calls and answer.get("content") in (said.get("content"), asked.answer.text)


def _likeness(run: Run, asked: Asked, step: Step, before: Sequence[str]) -> tuple[bool, int]:
    stored = unpack(step.message) or {"given": []}
    names = run.conversations.names(asked.conversation.digest)
    told = [str(run.conversations.value(name).get("content")) for name in names[1:]]
    given = all(any(str(message["content"]) in text for text in told) for message in stored["given"])
    return given, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(names, before, strict=False)))


def as_template(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages as chat templates take them: with the arguments of calls as objects, and without reasoning that only the
    model that wrote it can read."""
    readable = sendable(messages, "")
    return tuple(_with_objects(message) if message.get("tool_calls") else message for message in readable)


def _with_objects(message: Message) -> Message:
    calls = [{**call, "function": _with_object(call["function"])} for call in message["tool_calls"]]
    return {**message, "content": message.get("content") or "", "tool_calls": calls}


def _with_object(function: Mapping[str, Any]) -> Mapping[str, Any]:
    given = function["arguments"]
    return {**function, "arguments": loads(given or "{}") if isinstance(given, str) else given}


def _said(message: Message) -> tuple[object, ...]:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return message.get("content") or "", [(call["name"], call["arguments"]) for call in calls]


def bare(message: Message) -> Message:
    """The message without the ids of calls, which a server draws by chance; for comparisons."""
    kept = {key: value for key, value in message.items() if key != "tool_call_id"}
    return kept | ({"tool_calls": [call["function"] for call in kept["tool_calls"]]} if kept.get("tool_calls") else {})


def said(turn: Turn) -> str:
    """Names an answer by its words and all before it; the ids of calls do not count."""
    return digest_of([bare(message) for message in (*turn.prompt, turn.answer)])


def is_merge(tree: Tree, leaf: NodeId) -> bool:
    """Whether more led to a leaf than the turns of its path: a state on it was made without any, of two branches or of
    a part that was searched elsewhere."""
    return any(not node.steps for node in tree.path(leaf)[1:])
