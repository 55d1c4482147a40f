"""Turns: a policy proposes actions and they are applied, until a state has to be measured or the line of work ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Protocol

from agent import actions
from agent.actions import Action, Debug, Edit, Kind, Observation, Shell, Submit, Write
from agent.budget import BudgetSpent
from agent.engine.feedback import Feedback, not_submitted
from agent.errors import RamifyError
from agent.policy import Policy, Position, Proposal
from agent.run.temporary_snapshots import TemporarySnapshots
from agent.run.tree.node import Step
from sandboxes import Provider, Sandbox, SandboxLost, Snapshot


class TurnContext(Protocol):
    """The caller of `TurnRunner`: an expansion, or a recorded path that is carried out again."""

    def position(self, box: Sandbox, steps: tuple[Step, ...]) -> Position:
        """Return what the policy sees of a fork after these turns."""
        ...

    def feedback(self, steps: tuple[Step, ...]) -> Feedback:
        """The object that answers `run_tests` and `submit` after these turns."""
        ...

    def ends_after(self, turns: int) -> bool:
        """Whether to stop after so many turns. Not called after a turn that is the last in any case."""
        ...

    def known_state(self, step: Step) -> Snapshot | None:
        """Return the state that the step led to if an earlier expansion of the same state consisted of it alone. Such a
        step is not applied again, unless the policy reads the answer."""
        ...

    def show_values(self, state: Snapshot, wanted: Debug) -> str:
        """Run one test and return the values of its variables as text.

        Raises:
            agent.errors.MeasureError: the test could not be run.
        """
        ...


@dataclass(frozen=True, slots=True)
class TurnsResult:
    """The state that the turns led to, and how they ended."""

    state: Snapshot
    steps: tuple[Step, ...]
    """The turns; empty: the policy had nothing left to propose."""
    last: Proposal
    """The last proposal, with the geometric mean of all priors."""
    line_end: str = ""
    """Why the line of work has ended; empty if it continues."""
    error: RamifyError | BudgetSpent | SandboxLost | None = None
    """What ended the turns early."""


@dataclass(frozen=True, slots=True)
class TurnRunner:
    """Takes a policy's turns, each in a fresh fork of the state that the previous turn left."""

    provider: Provider
    policy: Policy
    limit: int
    """Turns after which the state is measured even if the policy would continue."""
    temporary: TemporarySnapshots
    context: TurnContext
    allowed: Collection[Kind] = ()
    """Irreversible commands that may be run."""
    keep: Callable[[bytes], str] | None = None
    """Stores text that is too long to be shown, and returns a name for it."""

    def take(self, start: Snapshot, rng: Random) -> TurnsResult:
        """Take turns, starting from a state.

        Raises:
            RamifyError, agent.budget.BudgetSpent, sandboxes.SandboxLost: a turn failed or was not allowed before
                anything had changed. A later failure loses only that turn.
        """
        taken = TurnsResult(start, (), Proposal(()))
        while len(taken.steps) < self.limit:
            try:
                with self.provider.at(taken.state) as box:
                    proposal = self.policy.propose(self.context.position(box, taken.steps), rng)
                    if not (proposal.actions or proposal.message):
                        label = proposal.label or taken.last.label
                        return replace(taken, last=replace(taken.last, label=label), line_end=proposal.line_end)
                    state, step = self._turn(taken, proposal, box)
            except (RamifyError, BudgetSpent, SandboxLost) as error:
                if taken.state.digest == start.digest:
                    raise
                return replace(taken, error=error)
            count = len(taken.steps) + 1
            prior = taken.last.prior ** (1 - 1 / count) * proposal.prior ** (1 / count)
            line_end = "submitted" if step.submission else proposal.line_end
            taken = TurnsResult(state, (*taken.steps, step), replace(proposal, prior=prior), line_end)
            if proposal.final or line_end or self.context.ends_after(len(taken.steps)):
                break
        return taken

    def _turn(self, taken: TurnsResult, proposal: Proposal, box: Sandbox) -> tuple[Snapshot, Step]:
        """Apply a proposal in a fork of the state that the turns so far have led to."""
        step = Step(proposal.actions, (), proposal.message, proposal.usage, self.policy.policy_id)
        last, talks = proposal.final or self.limit == 1, bool(proposal.message)
        if last and not (talks or taken.steps) and (known := self.context.known_state(step)) is not None:
            return known, step
        state, observations = self._act(taken.state, proposal.actions, box, self.context.feedback(taken.steps), talks)
        return state, replace(step, observations=observations)

    def _act(
        self,
        state: Snapshot,
        todo: Sequence[Action],
        box: Sandbox,
        feedback: Feedback,
        talks: bool,
        failed: bool = False,
    ) -> tuple[Snapshot, tuple[Observation, ...]]:
        """Apply actions in order. A command that times out loses only its own effects. No snapshot is taken if nothing
        was done, and actions after an accepted `submit` are not carried out. `talks`: the policy reads the answers, so
        that a `submit` may be answered with a review. `failed`: a call before these failed."""
        observations: list[Observation] = []
        saved = True
        for position, action in enumerate(todo):
            ran = bool(position) and isinstance(todo[position - 1], Shell)
            if not saved and (ran or not isinstance(action, (Edit, Write))):
                state, saved = self._saved(state, box, observations, ran), True
            values = partial(self.context.show_values, state)
            tests = partial(feedback.tested, state, answered=tuple(observations))
            submit = partial(feedback.submitted, state, answered=tuple(observations)) if talks else None
            done = tuple(zip(todo, observations, strict=False))
            if talks and isinstance(action, Submit) and (failed or not feedback.may_submit(state, action, done)):
                observations.append(not_submitted(done))
                continue
            observations.append(actions.apply(action, box, tests, self.allowed, self.keep, values, submit))
            if isinstance(action, Submit) and observations[-1].ok:
                left = len(todo) - position - 1
                observations += [Observation("Not done: the work was submitted before it.", ok=False)] * left
                break
            if observations[-1].fork_lost:
                with self.provider.at(state) as fresh:
                    state, rest = self._act(state, todo[position + 1 :], fresh, feedback, talks, failed=True)
                return state, (*observations[:-1], replace(observations[-1], unchanged=True), *rest)
            saved = saved and not _changes(action, observations[-1])
        if not saved:
            state = self._saved(state, box, observations, isinstance(todo[-1], Shell))
        return state, tuple(observations)

    def _saved(self, before: Snapshot, box: Sandbox, observations: list[Observation], ran: bool) -> Snapshot:
        """Return a snapshot of the fork. `ran`: only a shell command ran since the last snapshot, so the digests tell
        whether it changed anything."""
        state = self.temporary.take(box)
        if ran and state.digest == before.digest:
            observations[-1] = replace(observations[-1], unchanged=True)
        return state


def _changes(action: Action, observation: Observation) -> bool:
    """Whether the action may have changed the state."""
    return (isinstance(action, Shell) and not observation.refused) or (
        isinstance(action, (Edit, Write)) and observation.ok
    )
