"""Components: what a search is made of, chosen by the settings in `agent.build`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent.actions import Kind
from agent.budget import Budget
from agent.evaluate.foresight import Foresight, SiblingRanking
from agent.evaluate.value import Value
from agent.measure.timing import Timing
from agent.models import Ask, Model
from agent.models.halt import Halt
from agent.policy import Policy
from agent.run.ballots import Judge
from agent.run.memo import Memo
from agent.run.run import Run
from agent.run.tree.choice import Choice
from agent.run.tree.node import Node
from agent.search import Search
from agent.settings import RefineSettings, TournamentSettings
from agent.task import Task
from sandboxes import Provider

Recall = Callable[[Task, tuple[Node, ...], Memo], str]
"""Looks up what the memory knows that fits the last state of a path. Each look-up is made once and noted."""


class Exchange(Policy, Protocol):
    """Brings in states of other runs of the task, and may share those of this one."""

    def sync(self, run: Run, provider: Provider) -> None:
        """Share new states of this run, and read those of others."""
        ...

    def next(self) -> Choice | None:
        """A choice to try a state of another run, which `propose` then reads; None if no new one is known."""
        ...


@dataclass(frozen=True, slots=True)
class RoundComponents:
    """The components of a run in rounds: how many rollouts, and what summarises, compares and plans them."""

    rollouts: int = 1
    """Rollouts to finish in each round, at least 1."""
    rounds: int = 1
    """The maximum number of rounds, at least 1."""
    single_edits: bool = False
    """Whether the policy proposes single edits: then a rollout is finished only when it solves the task."""
    tournament: TournamentSettings = field(default_factory=TournamentSettings)
    refine: RefineSettings = field(default_factory=RefineSettings)
    judge: Callable[[Ask], Judge] | None = None
    """Makes the judge that compares rollouts; None: only rules compare them."""
    summariser: Model | None = None
    """Summarises rollouts; None: summaries are made from the journal, without a model."""
    contrast: Model | None = None
    """Looks for candidates that only satisfy the tests; None: no model does."""
    planner: Model | None = None
    """Draws the plan of a round; None: rounds have no plan."""


@dataclass(frozen=True, slots=True)
class Components:
    """What a search is made of; `agent.build.composition` chooses them."""

    provider: Provider
    policy: Policy
    search: Search
    value: Value
    budget: Budget
    baseline_runs: int | None = None
    """How often the root state is measured, to find flaky tests; None: twice if that is cheap."""
    workers: int = 1
    seed: int = 0
    others: tuple[Policy, ...] = ()
    """Further policies that work on the same tree (`agent.policy.panel`)."""
    exchange: Exchange | None = None
    """Brings in states of other runs; None: nothing does."""
    gate: Literal["none", "strict"] = "none"
    """`strict`: no state is expanded that does not strictly improve on its parent (`agent.evaluate.improvement`)."""
    allowed: tuple[Kind, ...] = ()
    """Irreversible commands that may be run (`agent.actions.irreversible`)."""
    halt: Halt = field(default_factory=Halt)
    """Stops the waiting for models."""
    recall: Recall | None = None
    """Looks up repairs of other issues (`agent.learning.memory.recall`); None: there is no memory."""
    track: bool = False
    """Whether models are shown what is left to do in a refactoring (`agent.evaluate.references`)."""
    localise: bool = False
    """Whether the policy reads the root's coverage spectrum (the note `spectrum`)."""
    lines: int | None = 1
    """Lines of work that have to be submitted; None: the policies propose single edits."""
    extra_lines: int = 0
    """Lines of work that may be started in addition."""
    patience: int = 3
    """The run ends after this many lines of work in a row, at least 1, without a better state."""
    timing: Timing = field(default_factory=Timing)
    """How long runs of the tests may take."""
    foresight: Foresight | SiblingRanking | None = None
    """Predicts the value of a state before it is measured; None: its prior is the policy's."""
    rounds: RoundComponents | None = None
    """The components of rounds; None: one search, until a state is solved."""
