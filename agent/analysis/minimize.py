"""Minimisation: a solved path without its detours, and the proof that it still solves the task.

Based on Retro-Search, which looks for shorter paths in correct traces. Invariant: the remaining turns were carried out
from the root state, each call failed or succeeded as before, and a new run of the whole test suite shows that the task
is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from agent.actions import Debug, Effect, Kind, Observation, RunTests, effect
from agent.engine.feedback import Feedback
from agent.engine.turns import TurnRunner
from agent.evaluate.scorer import StagedScorer
from agent.evaluate.value.tests import PassingTests
from agent.policy import Position, Proposal
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.node import Node, NodeId, Step
from agent.task import Task
from sandboxes import Provider, Sandbox, Snapshot

NOTE = "shortened"
"""The key of the note at the leaf that holds the result."""
Seen = tuple[tuple[Observation, ...], ...]


@dataclass(frozen=True, slots=True)
class Shortened:
    """The turns of a path that suffice to solve the task."""

    turns: tuple[tuple[NodeId, int], ...]
    """The turns in order, each as its node and its number there."""
    seen: tuple[tuple[str, ...], ...]
    """The results of each turn's calls when they were carried out without the omitted turns."""
    of: int
    """The number of turns of the whole path."""
    tried: int
    """How many paths were carried out to find it."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Shortened:
        """Read the note."""
        turns = tuple((node, number) for node, number in data["turns"])
        return cls(turns, tuple(map(tuple, data["seen"])), data["of"], data["tried"])


@dataclass(frozen=True, slots=True)
class Bench:
    """Carries out paths of a run once more."""

    provider: Provider
    root: Node
    scorer: StagedScorer
    allowed: Collection[Kind] = ()
    """Irreversible commands that may be run."""

    @classmethod
    def of(cls, provider: Provider, task: Task, root: Node, allowed: Collection[Kind] = ()) -> Bench:
        """A bench that values states by their tests. Raises UsageError if the root's report lacks a goal test."""
        return cls(provider, root, StagedScorer(provider, task, root.snapshot, root.report, PassingTests()), allowed)

    def solves(self, steps: Sequence[Step]) -> Seen | None:
        """Carry out these turns from the root state. Returns the observations of each turn; None if the last state is
        not solved, or a call fails that succeeded before or the other way round."""
        with TemporarySnapshots(self.provider) as snapshots:
            turns = TurnRunner(self.provider, _Again(tuple(steps)), len(steps), snapshots, self, self.allowed)
            taken = turns.take(self.root.snapshot, Random(0))
            same = [_succeeded(step) for step in taken.steps] == [_succeeded(step) for step in steps]
            return tuple(step.observations for step in taken.steps) if same and self._solved(taken.state) else None

    def position(self, box: Sandbox, steps: tuple[Step, ...]) -> Position:
        """The position shown to the policy that repeats the turns."""
        return Position(self.scorer.task, (self.root,), 0, (), steps, box)

    def ends_after(self, turns: int) -> bool:
        """Always False: all turns are carried out."""
        return False

    def known_state(self, step: Step) -> Snapshot | None:
        """Always None: each step is carried out."""
        return None

    def show_values(self, state: Snapshot, wanted: Debug) -> str:
        """The values that a run of one test shows."""
        return self.scorer.debug(state, wanted)

    def feedback(self, steps: tuple[Step, ...]) -> Feedback:
        """Answer `run_tests` and `submit` without charging a budget."""
        return Feedback(
            task=self.scorer.task,
            provider=self.provider,
            base=self.root.snapshot,
            baseline=self.root.report,
            scorer=self.scorer,
            spend=lambda usage: None,
            turns=steps,
        )

    def _solved(self, state: Snapshot) -> bool:
        return self.scorer.assess(state, (self.root,), self.root.report).evaluation.solved


@dataclass(frozen=True, slots=True)
class _Again:
    """A policy that repeats recorded turns."""

    steps: tuple[Step, ...]
    policy_id: str = "again/1"

    def propose(self, position: Position, rng: Random) -> Proposal:
        number = len(position.steps)
        step = self.steps[number]
        return Proposal(step.actions, step.message, final=number + 1 == len(self.steps))


def shorten(path: Sequence[Node], solves: Callable[[Sequence[Step]], Seen | None], most: int = 20) -> Shortened | None:
    """Find as few turns of a solved path as suffice, in at most `most` tries (at least 1). Return None if the path
    itself, carried out again, does not solve the task.

    The longest detours are tried first, the earliest of them before others. A detour begins and ends with a turn that
    changed something or failed. Turns that only read are left out only inside a detour, since later turns may depend on
    them.
    """
    turns = [(node.id, number) for node in path for number in range(len(node.steps))]
    steps = [step for node in path for step in node.steps]
    kept = tuple(range(len(steps)))
    seen, tried, refuted = solves(steps), 1, set[tuple[int, ...]]()
    if seen is None:
        return None
    while shorter := next((turns_left for turns_left in _shorter(kept, steps) if turns_left not in refuted), None):
        if tried == most:
            break
        tried += 1
        if observations := solves([steps[place] for place in shorter]):
            kept, seen = shorter, observations
        else:
            refuted.add(shorter)
    texts = tuple(tuple(observation.text for observation in of_turn) for of_turn in seen)
    return Shortened(tuple(turns[place] for place in kept), texts, len(steps), tried)


def _shorter(kept: tuple[int, ...], steps: Sequence[Step]) -> Iterator[tuple[int, ...]]:
    """The remaining turns without one detour, for each possible detour."""
    ends = [place for place, number in enumerate(kept) if _did_something(steps[number])]
    for length in range(len(ends) - 1, 0, -1):
        for first, last in zip(ends, ends[length - 1 :], strict=False):
            yield kept[:first] + kept[last + 1 :]


def _did_something(step: Step) -> bool:
    return any(
        effect(action) is not Effect.READ_ONLY or not (seen.ok or isinstance(action, RunTests))
        for action, seen in zip(step.actions, step.observations, strict=False)
    )


def _succeeded(step: Step) -> list[bool]:
    """Whether each call of a turn succeeded. A test run succeeds even if tests fail."""
    pairs = zip(step.actions, step.observations, strict=False)
    return [seen.ok or isinstance(action, RunTests) for action, seen in pairs]
