"""Distilling: a model revises the list of insights after a repair, by operations that are parsed strictly.

Invariant: an answer that names an insight twice, or one that the model was not shown, is rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agent.actions.excerpt import excerpt
from agent.budget import Usage
from agent.learning.memory.insights import Add, Drop, Merge, Operation, named_by
from agent.learning.memory.items import Episode, Insight
from agent.learning.memory.remembering import Contrast
from agent.models import Ask, Completion, Message, Model, directly
from agent.models.answers import LINE_CHARACTERS, Unreadable, ask_until_readable, last_object
from agent.prompts import render
from agent.untrusted import fence, visible

MOST_OPERATIONS = 6
RETRIES = 2
"""How often the model may correct an answer that cannot be read."""
ISSUE_BYTES = 4_000
_KEYS = {"add": {"text"}, "merge": {"ids", "text"}, "drop": {"id", "reason"}}


@dataclass(frozen=True, slots=True)
class Distiller:
    """Asks a model how the insights change."""

    model: Model
    ask: Ask = directly

    def __call__(
        self, repair: Episode, lessons: Sequence[str], insights: Sequence[Insight], contrasts: Sequence[Contrast] = ()
    ) -> list[Operation]:
        """The operations for a repair, given its lessons, the insights that may change, and contrasts between changes
        of one state that led to the solution and changes that did not.

        Raises:
            agent.models.answers.Abstained: no answer could be read.
            agent.errors.RamifyError: as `agent.models.Model.complete`.
        """
        shown = render(
            "memory_evidence",
            outcome=repair.outcome,
            evidence=repair.evidence,
            issue=excerpt(repair.issue, ISSUE_BYTES)[0],
            failures="\n".join(repair.failures),
            lessons=lessons,
            contrasts=contrasts,
            patch=repair.patch,
            insights=[{"id": insight.id, "text": insight.text} for insight in insights],
        )
        evidence = visible(shown).strip()
        question = render("memory_operations", evidence=evidence, fence=fence("repair", evidence), most=MOST_OPERATIONS)
        read = partial(read_operations, known=frozenset(insight.id for insight in insights))
        return ask_until_readable(self.ask, self.model, [{"role": "user", "content": question}], read, RETRIES)


@dataclass(slots=True)
class Tally:
    """Counts the usage of model calls made outside a run."""

    usage: Usage = field(default_factory=Usage)

    def ask(
        self, model: Model, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), **sampling: Any
    ) -> Completion:
        """As `agent.models.directly`."""
        answer = directly(model, messages, tools, **sampling)
        self.usage += answer.usage
        return answer


def read_operations(answer: str, known: Collection[str]) -> list[Operation]:
    """The operations in an answer.

    Raises:
        Unreadable: the answer has no operations, too many, or one that is not valid; the message says which and why.
    """
    objects = last_object(answer, "operations")["operations"]
    if not isinstance(objects, list) or len(objects) > MOST_OPERATIONS:
        raise Unreadable(f"`operations` has to be a list of at most {MOST_OPERATIONS}")
    operations = [_operation(value, number) for number, value in enumerate(objects, 1)]
    named = [name for operation in operations for name in named_by(operation)]
    for name in named:
        if name not in known:
            raise Unreadable(f"there is no insight {name!r} in the list")
        if named.count(name) > 1:
            raise Unreadable(f"the insight {name!r} is named twice")
    return operations


def _operation(value: object, number: int) -> Operation:
    if not isinstance(value, dict) or value.get("op") not in _KEYS:
        raise Unreadable(f"operation {number} has to be an object whose `op` is one of {', '.join(_KEYS)}")
    keys = _KEYS[value["op"]]
    if value.keys() != keys | {"op"}:
        raise Unreadable(f"operation {number}, `{value['op']}`, has to have exactly the keys {', '.join(sorted(keys))}")
    match value["op"]:
        case "add":
            return Add(_text(value, "text", number))
        case "merge":
            ids = value["ids"]
            if not isinstance(ids, list) or not ids or not all(isinstance(name, str) for name in ids):
                raise Unreadable(f"the `ids` of operation {number} have to be a list of at least one id")
            return Merge(tuple(ids), _text(value, "text", number))
        case _:
            return Drop(_text(value, "id", number), _text(value, "reason", number))


def _text(operation: Mapping[str, Any], key: str, number: int) -> str:
    text = operation[key]
    if not isinstance(text, str) or not text.strip() or len(text) > LINE_CHARACTERS:
        raise Unreadable(f"the `{key}` of operation {number} has to be a text of 1 to {LINE_CHARACTERS} characters")
    return text
