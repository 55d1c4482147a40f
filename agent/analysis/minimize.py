"""Minimises solved paths: leaves their detours out and proves that the rest still solves the task.

After Retro-Search, which looks for shorter ways in traces that were right. Law: what is left was carried out from the
base state, each call of it failed or not as it had before, and the whole suite, run afresh, says that it is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from agent.actions import Debug, Effect, Kind, Observation, RunTests, effect
from agent.engine.review import Review
from agent.engine.turns import Turns
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value.tests import PassingTests
from agent.policy import Position, Proposal
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.tree import Node, NodeId, Step
from agent.task import Task
from sandboxes import Provider, Sandbox, Snapshot

__all__ = ["NOTE", "Bench", "Shortened", "shorten"]

NOTE = "shortened"
"""The key under which a run keeps it at the leaf."""
Seen = tuple[tuple[Observation, ...], ...]


@dataclass(frozen=True, slots=True)
class Shortened:
    """The turns of a path that are enough."""

    turns: tuple[tuple[NodeId, int], ...]
    """Each by its node and its number there, in order."""
    seen: tuple[tuple[str, ...], ...]
    """What the calls of each said when they were carried out without the turns that were left out."""
    of: int
    """Turns that the path has."""
    tried: int
    """Paths that were carried out to find it."""

    def to_json(self) -> dict[str, Any]:
        """The form that a journal keeps."""
        return {"turns": self.turns, "seen": self.seen, "of": self.of, "tried": self.tried}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Shortened:
        """What was kept."""
        turns = tuple((node, number) for node, number in data["turns"])
        return cls(turns, tuple(map(tuple, data["seen"])), data["of"], data["tried"])


@dataclass(frozen=True, slots=True)
class Bench:
    """Where paths of a run are carried out once more."""

    provider: Provider
    root: Node
    scorer: StagedScorer
    allowed: Collection[Kind] = ()
    """Commands that may be run although they cannot be taken back."""

    @classmethod
    def of(cls, provider: Provider, task: Task, root: Node, allowed: Collection[Kind] = ()) -> Bench:
        """Raises UsageError where the goal tests of the task are none of those that the root's report has."""
        return cls(provider, root, StagedScorer(provider, task, root.snapshot, root.report, PassingTests()), allowed)

    def solves(self, steps: Sequence[Step]) -> Seen | None:
        """What the calls of these turns say one after the other, from the base state; None where the end is not solved,
        or a call fails that did not before, or the other way round."""
        with TemporarySnapshots(self.provider) as made:
            turns = Turns(self.provider, _Again(tuple(steps)), len(steps), made, self, self.allowed)
            taken = turns.take(self.root.snapshot, Random(0))
            same = [_went(step) for step in taken.steps] == [_went(step) for step in steps]
            return tuple(step.observations for step in taken.steps) if same and self._solved(taken.state) else None

    def position(self, box: Sandbox, steps: tuple[Step, ...]) -> Position:
        """What the policy that repeats the turns is shown."""
        return Position(self.scorer.task, (self.root,), 0, (), steps, box)

    def ends_after(self, turns: int) -> bool:
        """Never: all turns are carried out."""
        return False

    def known(self, step: Step) -> Snapshot | None:
        """Nothing: each step is carried out."""
        return None

    def show_values(self, state: Snapshot, wanted: Debug) -> str:
        """What a run of one test shows of its values."""
        return self.scorer.debug(state, wanted)

    def review(self, steps: tuple[Step, ...]) -> Review:
        """What answers `run_tests` and `submit`, with nothing to pay."""
        return Review(
            task=self.scorer.task,
            provider=self.provider,
            base=self.root.snapshot,
            baseline=self.root.report,
            scorer=self.scorer,
            spend=lambda usage: None,
            turns=steps,
        )

    def _solved(self, state: Snapshot) -> bool:
        return self.scorer.judge(state, (self.root,), self.root.report).evaluation.solved


@dataclass(frozen=True, slots=True)
class _Again:
    """A policy that does what was done."""

    steps: tuple[Step, ...]
    policy_id: str = "again/1"

    def propose(self, position: Position, rng: Random) -> Proposal:
        number = len(position.steps)
        step = self.steps[number]
        return Proposal(step.actions, step.message, final=number + 1 == len(self.steps))


def shorten(path: Sequence[Node], solves: Callable[[Sequence[Step]], Seen | None], most: int = 20) -> Shortened | None:
    """The fewest turns of a solved path that are found to be enough, in at most `most` tries, from 1; None where the
    path itself, carried out again, does not solve the task.

    The longest detours are tried first, of those the earliest. A detour begins and ends with a turn that changed
    something or failed: turns that only looked are left out inside of one, as what came after may rest on them.
    """
    turns = [(node.id, number) for node in path for number in range(len(node.steps))]
    steps = [step for node in path for step in node.steps]
    kept = tuple(range(len(steps)))
    seen, tried, refuted = solves(steps), 1, set[tuple[int, ...]]()
    if seen is None:
        return None
    while shorter := next((each for each in _shorter(kept, steps) if each not in refuted), None):
        if tried == most:
            break
        tried += 1
        if found := solves([steps[place] for place in shorter]):
            kept, seen = shorter, found
        else:
            refuted.add(shorter)
    texts = tuple(tuple(each.text for each in observed) for observed in seen)
    return Shortened(tuple(turns[place] for place in kept), texts, len(steps), tried)


def _shorter(kept: tuple[int, ...], steps: Sequence[Step]) -> Iterator[tuple[int, ...]]:
    """The turns that are left without one detour, for each that there may be."""
    ends = [place for place, number in enumerate(kept) if _did_something(steps[number])]
    for length in range(len(ends) - 1, 0, -1):
        for first, last in zip(ends, ends[length - 1 :], strict=False):
            yield kept[:first] + kept[last + 1 :]


def _did_something(step: Step) -> bool:
    return any(
        effect(action) is not Effect.READ_ONLY or not (seen.ok or isinstance(action, RunTests))
        for action, seen in zip(step.actions, step.observations, strict=False)
    )


def _went(step: Step) -> list[bool]:
    """Whether each call of a turn failed. Tests that fail are a result like any other."""
    pairs = zip(step.actions, step.observations, strict=False)
    return [seen.ok or isinstance(action, RunTests) for action, seen in pairs]
