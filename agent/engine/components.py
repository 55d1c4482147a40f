"""Parts: what a search is made of, and the one part that is made anew in each session, the scorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent.actions import Debug, Kind
from agent.budget import Budget
from agent.evaluate.reproduction import Finding
from agent.evaluate.value import Value
from agent.measure import SuiteReport
from agent.measure.timing import Timing
from agent.models import Ask
from agent.models.halt import Halt
from agent.policy import Policy
from agent.run.ballots import Judge
from agent.run.memo import Memo
from agent.run.rollouts import Plan, Rollout, Summary
from agent.run.run import Run
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.tree import Node
from agent.search import Search
from agent.settings import RefineSettings, TournamentSettings
from agent.task import Task
from sandboxes import Provider, Snapshot

__all__ = ["Components", "Planner", "Recall", "RoundComponents", "Scorer", "Summariser"]

Recall = Callable[[Task, tuple[Node, ...], Memo], str]
"""What is remembered that fits the last state of a path. It is looked up once, and noted."""


class Scorer(Protocol):
    """Measures a state and says what it is worth."""

    @property
    def task(self) -> Task:
        """The task, with its goal tests as they are named in the base state's report."""
        ...

    def score(self, snapshot: Snapshot, path: tuple[Node, ...]) -> tuple[SuiteReport, Evaluation, int]:
        """The report, its evaluation and how many runs of the tests they took."""
        ...

    def score_again(self, node: Node, path: tuple[Node, ...]) -> tuple[SuiteReport, Evaluation, int]:
        """The same of a node below `path`, found afresh: its tests are run once more, whatever is known."""
        ...

    def run_tests(self, snapshot: Snapshot, tests: tuple[str, ...]) -> tuple[SuiteReport, int]:
        """What some tests say, or all, for a policy to look at, and how many runs of the tests that took.

        Raises:
            agent.errors.MeasureError: there is no such test; nothing was run.
        """
        ...

    def reproduction(self, snapshot: Snapshot, report: SuiteReport) -> tuple[Finding | None, int]:
        """What the tests say that the state adds, where no goal is known, and how many runs of tests that took."""
        ...

    def put_back(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Existing test files that the state changes, which tests are run without."""
        ...

    def debug(self, snapshot: Snapshot, wanted: Debug) -> str:
        """What a run of one test shows of its values. It takes one run of the tests.

        Raises:
            agent.errors.MeasureError: what is wanted cannot be looked at; nothing was run.
        """
        ...


class Summariser(Protocol):
    """Puts a rollout into words."""

    def summarise(self, task: Task, run: Run, provider: Provider | None, rollout: Rollout, ask: Ask) -> Summary:
        """What the rollout tried and what came of it.

        Raises:
            agent.budget.BudgetSpent, agent.errors.Stopped: a limit was reached, or the run cancelled.
            agent.errors.ModelError, agent.errors.ConfigError: the provider of the model failed.
            sandboxes.SandboxError: a state could not be read.
        """
        ...


class Planner(Protocol):
    """Draws the plan of the next round from what the rollouts came to."""

    def draw(self, task: Task, summaries: Sequence[Summary], ask: Ask) -> Plan | None:
        """A plan for the task; None: none could be made.

        Raises:
            agent.budget.BudgetSpent: the question does not fit in what the run may spend.
            agent.errors.ModelError, agent.errors.ConfigError: the provider of the model failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class RoundComponents:
    """How many rollouts there are, and who sums them up, compares them and plans what is next."""

    rollouts: int = 1
    """To finish in each wave, at least 1."""
    rounds: int = 1
    """Waves, at most, at least 1."""
    single_edits: bool = False
    """The policy proposes single edits: a rollout is finished where it solves the task, and nowhere else."""
    tournament: TournamentSettings = field(default_factory=TournamentSettings)
    refine: RefineSettings = field(default_factory=RefineSettings)
    judge: Callable[[Ask], Judge] | None = None
    """Compares rollouts, asking its model in that way; None: rules alone do."""
    summariser: Summariser | None = None
    """Puts rollouts into words; None: what is recorded is put into words without a model."""
    planner: Planner | None = None
    """Draws the plan of a wave; None: it has none."""


@dataclass(frozen=True, slots=True)
class Components:
    """What a search is made of; `agent.build.composition` is where the parts are chosen."""

    provider: Provider
    policy: Policy
    search: Search
    value: Value
    budget: Budget
    baseline_runs: int | None = None
    """How often the base state is measured, to find flaky tests; None: twice where that is cheap."""
    workers: int = 1
    seed: int = 0
    turns_per_node: int = 200
    """Turns after which an expansion is measured even when its policy would go on."""
    others: tuple[Policy, ...] = ()
    """Further policies that work on the same tree (`agent.policy.panel`)."""
    gate: Literal["none", "strict"] = "none"
    """`strict`: no state is expanded that is no strict improvement of its parent (`agent.evaluate.improvement`)."""
    allowed: tuple[Kind, ...] = ()
    """Commands that may be run although they cannot be taken back (`agent.actions.irreversible`)."""
    halt: Halt = field(default_factory=Halt)
    """What ends the waiting for models."""
    recall: Recall | None = None
    """What is remembered of repairs of other issues (`agent.learning.memory.recall`)."""
    localise: bool = False
    """The policy reads the root's coverage spectrum (the note `spectrum`)."""
    lines: int | None = 1
    """Lines of work that have to be submitted; None: the policies propose single edits."""
    patience: int = 3
    """Lines of work in a row, at least 1, that may end without anything better before the run ends."""
    timing: Timing = field(default_factory=Timing)
    """How long runs of the tests may take."""
    waves: RoundComponents | None = None
    """None: it is searched until something is solved."""
