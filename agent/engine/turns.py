"""The turns of one expansion: propose -> act, until a state is to be measured or the line of work has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from agent import actions
from agent.actions import Action, Debug, Edit, Kind, Observation, Shell, Submit, Write
from agent.budget import BudgetSpent
from agent.engine.review import NOT_SUBMITTED, Review
from agent.errors import RamifyError
from agent.policy import Policy, Position, Proposal
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.tree import Step
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
    line_end: str = ""
    """Why the line of work has ended; empty where it continues."""
    error: RamifyError | BudgetSpent | None = None
    """What ended the turns early."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Takes the turns of an expansion, each in a fresh fork of the state that the one before left."""

    provider: Provider
    policy: Policy
    limit: int
    """Turns after which an expansion is measured even when its policy would go on."""
    made: TemporarySnapshots
    review: Callable[[tuple[Step, ...]], Review]
    """Answers `run_tests` and `submit` after these turns."""
    stopped: Callable[[int], bool]
    """Asked after each turn but a last one, with how many that makes: whether to be content with what there is."""
    known: Callable[[Step], Snapshot | None] = lambda step: None
    """Where a step led to that was the whole of an earlier expansion of the same state: it is not carried out again,
    unless the policy reads what it is answered."""
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
                    label = proposal.label or taken.last.label
                    return replace(taken, last=replace(taken.last, label=label), line_end=proposal.line_end)
                step = Step(proposal.actions, (), proposal.message, proposal.usage, self.policy.policy_id)
                ends = proposal.final or self.limit == 1
                talks = bool(proposal.message)
                state = self.known(step) if ends and not (talks or taken.steps) else None
                if state is None:
                    review = self.review(taken.steps)
                    state, observations = self._act(taken.state, proposal.actions, box, review, talks)
                    step = replace(step, observations=observations)
            count = len(taken.steps) + 1
            prior = taken.last.prior ** (1 - 1 / count) * proposal.prior ** (1 / count)
            line_end = "submitted" if step.submission else proposal.line_end
            taken = Taken(state, (*taken.steps, step), replace(proposal, prior=prior), line_end)
            if proposal.final or line_end or self.stopped(len(taken.steps)):
                break
        return taken

    def _act(
        self,
        state: Snapshot,
        todo: Sequence[Action],
        box: Sandbox,
        review: Review,
        talks: bool,
        failed: bool = False,
    ) -> tuple[Snapshot, tuple[Observation, ...]]:
        """Apply actions in order. A command that times out loses its own effects and those of nobody else; where
        nothing was done, nothing is frozen. What follows an accepted `submit` is not done. `talks`: the policy reads
        what it is answered, so that a `submit` may be answered with a review. `failed`: a call before these did."""
        seen: list[Observation] = []
        frozen = True
        for position, action in enumerate(todo):
            if not frozen and not isinstance(action, (Edit, Write)):
                state, frozen = self.made.freeze(box), True
            values = self.show_values and partial(self.show_values, state)
            tests = partial(review.tested, state, answered=tuple(seen))
            submit = partial(review.submitted, state, answered=tuple(seen)) if talks else None
            if talks and isinstance(action, Submit) and (failed or not all(each.ok for each in seen)):
                seen.append(Observation(NOT_SUBMITTED, ok=False))
                continue
            seen.append(actions.apply(action, box, tests, self.allowed, self.keep, values, submit))
            if isinstance(action, Submit) and seen[-1].ok:
                left = len(todo) - position - 1
                seen += [Observation("Not done: the work was submitted before it.", ok=False)] * left
                break
            if seen[-1].fork_lost:
                with self.provider.at(state) as fresh:
                    state, rest = self._act(state, todo[position + 1 :], fresh, review, talks, failed=True)
                return state, (*seen, *rest)
            frozen = frozen and not _changes(action, seen[-1])
        return (state if frozen else self.made.freeze(box)), tuple(seen)


def _changes(action: Action, seen: Observation) -> bool:
    """Whether the action may have changed the state."""
    return (isinstance(action, Shell) and not seen.refused) or (isinstance(action, (Edit, Write)) and seen.ok)
