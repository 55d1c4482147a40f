"""Distilling: a model says what the list of insights learns from a repair, in operations that are read strictly.

Law: an answer that names an insight that the model was not shown, or names one twice, is no answer.
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
from agent.models import Ask, Completion, Message, Model, directly
from agent.models.conversing import LINE_CHARACTERS, Unreadable, converse, last_object
from agent.prompts import render
from agent.untrusted import fence, visible

__all__ = ["Distiller", "Tally", "read_operations"]

MOST_OPERATIONS = 6
MENDS = 2
"""Answers that cannot be read and are answered with how to mend them."""
ISSUE_BYTES = 4_000
_KEYS = {"add": {"text"}, "merge": {"ids", "text"}, "drop": {"id", "reason"}}


@dataclass(frozen=True, slots=True)
class Distiller:
    """Asks a model."""

    model: Model
    ask: Ask = directly

    def __call__(self, repair: Episode, lessons: Sequence[str], insights: Sequence[Insight]) -> list[Operation]:
        """What a repair teaches, given its lessons and the insights that it may change.

        Raises:
            agent.models.conversing.Abstained: no answer could be read.
            agent.errors.RamifyError: as `agent.models.Model.complete`.
        """
        shown = render(
            "memory_evidence",
            outcome=repair.outcome,
            evidence=repair.evidence,
            issue=excerpt(repair.issue, ISSUE_BYTES)[0],
            failures="\n".join(repair.failures),
            lessons=lessons,
            patch=repair.patch,
            insights=[{"id": each.id, "text": each.text} for each in insights],
        )
        evidence = visible(shown).strip()
        asked = render("memory_operations", evidence=evidence, fence=fence("repair", evidence), most=MOST_OPERATIONS)
        read = partial(read_operations, known=frozenset(each.id for each in insights))
        return converse(self.ask, self.model, [{"role": "user", "content": asked}], read, MENDS)


@dataclass(slots=True)
class Tally:
    """Counts what questions outside of a run cost."""

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
        Unreadable: there are none, too many, or one that is not as asked for; the message says which and why.
    """
    given = last_object(answer, "operations")["operations"]
    if not isinstance(given, list) or len(given) > MOST_OPERATIONS:
        raise Unreadable(f"`operations` has to be a list of at most {MOST_OPERATIONS}")
    operations = [_operation(each, number) for number, each in enumerate(given, 1)]
    named = [each for operation in operations for each in named_by(operation)]
    for each in named:
        if each not in known:
            raise Unreadable(f"there is no insight {each!r} in the list")
        if named.count(each) > 1:
            raise Unreadable(f"the insight {each!r} is named twice")
    return operations


def _operation(given: object, number: int) -> Operation:
    if not isinstance(given, dict) or given.get("op") not in _KEYS:
        raise Unreadable(f"operation {number} has to be an object whose `op` is one of {', '.join(_KEYS)}")
    keys = _KEYS[given["op"]]
    if given.keys() != keys | {"op"}:
        raise Unreadable(f"operation {number}, `{given['op']}`, has to have exactly the keys {', '.join(sorted(keys))}")
    match given["op"]:
        case "add":
            return Add(_words(given, "text", number))
        case "merge":
            ids = given["ids"]
            if not isinstance(ids, list) or not ids or not all(isinstance(each, str) for each in ids):
                raise Unreadable(f"the `ids` of operation {number} have to be a list of at least one id")
            return Merge(tuple(ids), _words(given, "text", number))
        case _:
            return Drop(_words(given, "id", number), _words(given, "reason", number))


def _words(given: Mapping[str, Any], key: str, number: int) -> str:
    text = given[key]
    if not isinstance(text, str) or not text.strip() or len(text) > LINE_CHARACTERS:
        raise Unreadable(f"the `{key}` of operation {number} has to be a text of 1 to {LINE_CHARACTERS} characters")
    return text
