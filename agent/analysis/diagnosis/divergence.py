"""Divergence: where two rollouts of one task part, in what was said, done, seen and reached.

Paired runs are compared in this way to see how one bad result spreads (Trace-Level Analysis of Information
Contamination in Multi-Agent Systems). That two rollouts part says nothing of which is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal

from agent.actions import Action
from agent.actions.canonical import respelled
from agent.analysis.diagnosis.steps import TraceStep, trace
from agent.errors import UsageError
from agent.policy.chat.transcript import said
from agent.run.action_log import ActionRecord, action_records, task_of
from agent.run.run import Run
from agent.run.tree.node import Node

__all__ = ["Divergence", "Moment", "Parting", "compare", "moments", "moments_of"]

Aspect = Literal["plan", "action", "result", "state"]
MISSING = "(nothing)"
BEFORE = 20
SHOWN = 200
"""Characters of what is compared that are shown."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One action of a rollout, with what is compared of it."""

    step: TraceStep
    action: Action
    seen: str
    words: str = ""
    """What was said before it; of several actions of one turn, before the first."""
    state: str = ""
    """The digest of the state that was measured after it, if one was."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference in one aspect."""

    aspect: Aspect
    """What was said, what was done, what was seen of the same action, or which state was reached."""
    step: int
    """The number of the step at which it is seen."""
    one: str
    other: str


@dataclass(frozen=True, slots=True)
class Parting:
    """How two rollouts differ."""

    first: tuple[Divergence, ...]
    """Of each aspect, the earliest first; empty where nothing differs."""
    later: tuple[TraceStep, ...]
    """Steps of the second after that which the first has not: what may come of it."""

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {"first": [asdict(each) for each in self.first], "later": [step.as_json() for step in self.later]}


def compare(one: Sequence[Moment], other: Sequence[Moment]) -> Parting:
    """Where the second rollout parts from the first, step by step."""
    found: dict[Aspect, Divergence] = {}
    for number, (left, right) in enumerate(zip_longest(one, other), 1):
        for aspect, was, now in _aspects(left, right):
            if was != now and aspect not in found:
                found[aspect] = Divergence(aspect, number, *_shown(was, now))
    first = tuple(sorted(found.values(), key=lambda each: each.step))
    return Parting(first, tuple(_added(one, other, first[0].step)) if first else ())


def moments(run: Run) -> list[Moment]:
    """The rollout of a run that came to the best state, the oldest among equals.

    Raises:
        agent.errors.UsageError: it has none.
    """
    tree = run.tree
    if not (rollouts := run.rollouts()):
        raise UsageError(f"{run.journal.directory}: it has no rollout yet; there is nothing to compare")
    best = max(rollouts, key=lambda each: (tree[each.best].value, -each.leaf))
    path = tree.path(best.leaf)
    done = list(action_records(path, task_of(run)))
    return [
        Moment(step, respelled(action_record.action), action_record.seen.text, words, state)
        for step, action_record, (words, state) in zip(trace(done), done, _around(path), strict=True)
    ]


def moments_of(done: Sequence[ActionRecord]) -> list[Moment]:
    """A rollout of another program, of which nothing but what it did and saw is read."""
    return [
        Moment(step, respelled(action_record.action), action_record.seen.text)
        for step, action_record in zip(trace(done), done, strict=True)
    ]


def _around(path: Sequence[Node]) -> Iterator[tuple[str, str]]:
    """For each action on a path what was said before it and the state that was measured after it."""
    spoken = ""
    for node in path:
        left = sum(len(step.observations) for step in node.steps)
        for step in node.steps:
            spoken += said(step)
            for _ in step.observations:
                left -= 1
                yield spoken, "" if left else node.state_hash
                spoken = ""


def _aspects(left: Moment | None, right: Moment | None) -> Iterator[tuple[Aspect, str, str]]:
    """What is compared of two moments. Results are, where the action is the same."""
    if left is None or right is None or left.action != right.action:
        yield "action", _done(left), _done(right)
    else:
        yield "result", left.seen, right.seen
    if left and right:
        yield "plan", left.words, right.words
        yield "state", left.state, right.state


def _done(moment: Moment | None) -> str:
    return repr(moment.action) if moment else MISSING


def _shown(one: str, other: str) -> tuple[str, str]:
    """Both, from a little before their first difference on."""
    pairs = enumerate(zip(one, other, strict=False))
    parted = next((n for n, (left, right) in pairs if left != right), min(len(one), len(other)))
    start = max(0, parted - BEFORE)
    return one[start : start + SHOWN], other[start : start + SHOWN]


def _added(one: Sequence[Moment], other: Sequence[Moment], after: int) -> Iterator[TraceStep]:
    """Steps of the second after that number whose actions the first has not in its order."""
    matcher = SequenceMatcher(None, [each.action for each in one], [each.action for each in other], autojunk=False)
    common = {n for block in matcher.get_matching_blocks() for n in range(block.b, block.b + block.size)}
    return (moment.step for n, moment in enumerate(other) if n >= after and n not in common)
