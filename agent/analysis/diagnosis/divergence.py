"""Divergence: where two rollouts of one task differ in plan, action, result and state.

Paired runs are compared in this way to see how one bad result spreads (Trace-Level Analysis of Information
Contamination in Multi-Agent Systems). A difference does not say which rollout is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
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

Aspect = Literal["plan", "action", "result", "state"]
MISSING = "(nothing)"
BEFORE = 20
SHOWN = 200
"""How many characters of each side are shown, from `BEFORE` before the first difference."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One action of a rollout, with the compared facts."""

    step: TraceStep
    action: Action
    seen: str
    words: str = ""
    """What the model said before the action; for several actions of one turn, only before the first."""
    state: str = ""
    """The digest of the state measured after the action; empty if none was."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference in one aspect."""

    aspect: Aspect
    """What differs: the model's words, the action, the result of the same action, or the state reached."""
    step: int
    """The number of the step at which they differ."""
    one: str
    other: str


@dataclass(frozen=True, slots=True)
class Parting:
    """How two rollouts differ."""

    first: tuple[Divergence, ...]
    """The first divergence in each aspect, in the order of steps; empty if nothing differs."""
    later: tuple[TraceStep, ...]
    """Later steps of the second rollout that the first does not have: possible consequences."""

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        first = [asdict(divergence) for divergence in self.first]
        return {"first": first, "later": [step.as_json() for step in self.later]}


def compare(one: Sequence[Moment], other: Sequence[Moment]) -> Parting:
    """Compare the second rollout with the first, step by step."""
    divergences: dict[Aspect, Divergence] = {}
    for number, (left, right) in enumerate(zip_longest(one, other), 1):
        for aspect, was, now in _aspects(left, right):
            if was != now and aspect not in divergences:
                divergences[aspect] = Divergence(aspect, number, *_shown(was, now))
    first = tuple(sorted(divergences.values(), key=lambda divergence: divergence.step))
    return Parting(first, tuple(_added(one, other, first[0].step)) if first else ())


def moments(run: Run) -> list[Moment]:
    """The rollout of a run with the best state; the oldest of several.

    Raises:
        agent.errors.UsageError: the run has no rollout.
    """
    tree = run.tree
    if not (rollouts := run.rollouts()):
        raise UsageError(f"{run.journal.directory}: it has no rollout yet; there is nothing to compare")
    best = max(rollouts, key=lambda rollout: (tree[rollout.best].value, -rollout.leaf))
    path = tree.path(best.leaf)
    records = list(action_records(path, task_of(run)))
    return [
        replace(moment, words=words, state=state)
        for moment, (words, state) in zip(moments_of(records), _around(path), strict=True)
    ]


def moments_of(done: Sequence[ActionRecord]) -> list[Moment]:
    """The actions and results of a rollout, without words and states: all that is read of other programs."""
    return [
        Moment(step, respelled(record.action), record.seen.text) for step, record in zip(trace(done), done, strict=True)
    ]


def _around(path: Sequence[Node]) -> Iterator[tuple[str, str]]:
    """For each action on a path, the words before it and the state measured after it."""
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
    """The compared aspects of two moments. Results are compared only for the same action."""
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
    """Both texts, from a little before their first difference."""
    pairs = enumerate(zip(one, other, strict=False))
    parted = next((n for n, (left, right) in pairs if left != right), min(len(one), len(other)))
    start = max(0, parted - BEFORE)
    return one[start : start + SHOWN], other[start : start + SHOWN]


def _added(one: Sequence[Moment], other: Sequence[Moment], after: int) -> Iterator[TraceStep]:
    """Steps of the second rollout after this number that a diff of the actions does not match with the first."""
    matcher = SequenceMatcher(None, [m.action for m in one], [m.action for m in other], autojunk=False)
    common = {n for block in matcher.get_matching_blocks() for n in range(block.b, block.b + block.size)}
    return (moment.step for n, moment in enumerate(other) if n >= after and n not in common)
