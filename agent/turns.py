"""The turns of one expansion: propose -> act, until its policy is content or the node's grain is reached."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from agent import actions
from agent.actions import Action, Debug, Edit, Kind, Observation, RunTests, Shell, Submit, View, Write
from agent.budget import BudgetSpent
from agent.drafts import Drafts
from agent.errors import RamifyError
from agent.measure import SuiteReport
from agent.policy import Policy, Position, Proposal
from agent.tree import Step
from sandboxes import Provider, Sandbox, Snapshot

__all__ = ["Taken", "Turns"]


@dataclass(frozen=True, slots=True)
class Taken:
    """What the turns of an expansion came to."""

    state: Snapshot
    steps: tuple[Step, ...]
    """None: the policy had nothing left to propose."""
    last: Proposal
    """With the prior of all."""
    error: RamifyError | BudgetSpent | None = None
    """What ended the turns before the policy was content."""

    @property
    def submitted(self) -> bool:
        """Whether the policy said that its work is done."""
        return any(isinstance(action, Submit) for step in self.steps for action in step.actions)


@dataclass(frozen=True, slots=True)
class Turns:
    """Takes the turns of an expansion, each in a fresh fork of the state that the one before left."""

    provider: Provider
    policy: Policy
    limit: int
    """Turns after which an expansion is measured even when its policy would go on."""
    made: Drafts
    show_tests: Callable[[Snapshot, tuple[str, ...]], SuiteReport]
    """Runs some tests, or all, for the policy to look at."""
    stopped: Callable[[int], bool]
    """Asked after each turn but a last one, with how many that makes: whether to be content with what there is."""
    known: Callable[[Step], Snapshot | None] = lambda step: None
    """Where a step led to that was the whole of an earlier expansion of the same state: it is not carried out again."""
    allowed: Collection[Kind] = ()
    """Irreversible commands that may be run."""
    keep: Callable[[bytes], str] | None = None
    """Stores what is too long to be shown, and gives it a name."""
    show_values: Callable[[Snapshot, Debug], str] | None = None
    """Runs one test for the policy to look at its values."""

    def take(self, start: Snapshot, rng: Random, position: Callable[[Sandbox, tuple[Step, ...]], Position]) -> Taken:
        """Go on from a state; `position` says what the policy is shown of a fork, after these turns.

        Raises:
            RamifyError, agent.budget.BudgetSpent: the policy failed, or may not go on, before anything had changed.
                Later, what was paid for is kept.
        """
        taken = Taken(start, (), Proposal(()))
        while len(taken.steps) < self.limit:
            with self.provider.at(taken.state) as box:
                try:
                    proposal = self.policy.propose(position(box, taken.steps), rng)
                except (RamifyError, BudgetSpent) as error:
                    if taken.state.digest == start.digest:
                        raise
                    return replace(taken, error=error)
                if not (proposal.actions or proposal.message):
                    taken = replace(taken, last=replace(taken.last, label=proposal.label or taken.last.label))
                    break
                step = Step(proposal.actions, (), proposal.message, proposal.usage, self.policy.policy_id)
                ends = proposal.final or self.limit == 1
                state = self.known(step) if ends and not taken.steps else None
                if state is None:
                    state, observations = self._act(taken.state, proposal.actions, box)
                    step = replace(step, observations=observations)
            count = len(taken.steps) + 1
            prior = taken.last.prior ** (1 - 1 / count) * proposal.prior ** (1 / count)
            taken = Taken(state, (*taken.steps, step), replace(proposal, prior=prior))
            if proposal.final or self.stopped(len(taken.steps)):
                break
        return taken

    def _act(self, state: Snapshot, todo: Sequence[Action], box: Sandbox) -> tuple[Snapshot, tuple[Observation, ...]]:
        """Apply actions in order. A command that times out loses its own effects and those of nobody else; where
        nothing was done, nothing is frozen."""
        seen: list[Observation] = []
        frozen = True
        for position, action in enumerate(todo):
            if not frozen and isinstance(action, (Shell, View, actions.Search, RunTests, Debug)):
                state, frozen = self.made.freeze(box), True
            tests, values = partial(self.show_tests, state), self.show_values and partial(self.show_values, state)
            seen.append(actions.apply(action, box, tests, self.allowed, self.keep, values))
            if seen[-1].fork_lost:
                with self.provider.at(state) as fresh:
                    state, rest = self._act(state, todo[position + 1 :], fresh)
                return state, (*seen, *rest)
            frozen = frozen and not _changes(action, seen[-1])
        return (state if frozen else self.made.freeze(box)), tuple(seen)


def _changes(action: Action, seen: Observation) -> bool:
    """Whether the action may have changed the state."""
    return (isinstance(action, Shell) and not seen.refused) or (isinstance(action, (Edit, Write)) and seen.ok)
