"""Nodes: measured states, the turns that led to them, and the results of their expansions. They never change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from agent.actions import Action, Edit, Observation, Submit, Write
from agent.budget import Usage
from agent.measure import SuiteReport
from agent.run.tree.evaluation import Evaluation
from sandboxes import Snapshot

NodeId = int
ROOT: NodeId = 0
Act = Literal["expand", "fuse", "measure"]
"""The kinds of work at a node (`agent.run.tree.choice.Choice.act`)."""
Work = tuple[NodeId, Act, NodeId | None, str]
"""A kind of work: the node, the act, the other branch, and the policy."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a policy."""

    actions: tuple[Action, ...]
    observations: tuple[Observation, ...]
    message: str = ""
    """What the policy said with its actions. A chat policy packs its turn here (`agent.policy.chat.transcript`)."""
    usage: Usage = field(default_factory=Usage)
    policy_id: str = ""
    """The policy that took the turn, if several policies work on one tree."""

    @property
    def submission(self) -> Submit | None:
        """The `submit` that ended the work; None: the turn has none, or it was answered with a review."""
        pairs = zip(self.actions, self.observations, strict=False)
        return next((action for action, seen in pairs if isinstance(action, Submit) and seen.ok), None)


@dataclass(frozen=True, slots=True)
class Node:
    """A measured state. Ids count up from 0, the root, in the order of recording."""

    id: NodeId
    parents: tuple[NodeId, ...]
    """The first is the state the edit was made in; the others are references. Empty for the root."""
    steps: tuple[Step, ...]
    snapshot: Snapshot
    report: SuiteReport
    evaluation: Evaluation
    prior: float = 1.0
    """How likely the policy, or a model with foresight, thought this child to be right before it was measured, in [0,
    1]."""
    policy_id: str = ""
    terminal: bool = False
    """Whether it is never expanded because it is solved or its line of work has ended here."""
    refused: bool = False
    """Whether it is never expanded because the run's gate rejected it."""
    label: str = ""
    """A few words for people: what was done (`mutate: + -> - at calc.py:12`)."""
    kind: str = ""
    """The requested kind of child (`strategy`, `solution`, `debug`, `repair`, `reproduction`, `fuse`); empty for a
    plain edit."""
    line_end: str = ""
    """Why the line of work ended here; empty if it continues, or if the policy proposes single edits."""
    patch: str = ""
    """The blob of the patch against the root; empty for single edits, whose actions show the change."""

    @property
    def state_hash(self) -> str:
        """The digest of the state: one test run per distinct value."""
        return self.snapshot.digest

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions of all turns."""
        return tuple(action for step in self.steps for action in step.actions)

    @property
    def edited(self) -> tuple[str, ...]:
        """The paths of its edits and writes, in order."""
        return tuple(action.path for action in self.actions if isinstance(action, (Edit, Write)))

    @property
    def by_model(self) -> bool:
        """Whether the state was reached by a line of work: the turns of a model, or of another policy that submits."""
        return any(step.message or step.submission for step in self.steps)

    @property
    def submission(self) -> Submit | None:
        """The `submit` with which the policy's work was accepted as done; None: it was not."""
        return next(filter(None, (step.submission for step in self.steps)), None)

    @property
    def submitted(self) -> bool:
        """Whether the policy's work was accepted as done."""
        return self.submission is not None

    @property
    def value(self) -> float:
        """The evaluation's value, in [0, 1]."""
        return self.evaluation.value

    def is_answer(self, root: Node) -> bool:
        """Whether its patch may be an answer. For a model: any change that does not manipulate the tests. For single
        edits and merges: the state is better than the root by its tests, including those it added, or a critic accepts
        it. It may have broken something."""
        if self is root or self.evaluation.tampered:
            return False
        if self.by_model:
            return self.state_hash != root.state_hash
        own = self.evaluation
        return own.reproduces or own.by_tests > root.evaluation.by_tests or own.accepted


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one expansion of a node."""

    child: NodeId | None = None
    """The state that it led to; None: it failed."""
    known: bool = False
    """Whether the tree already had that state."""
    reason: str = ""
    """Why it failed."""
    label: str = ""
    policy_id: str = ""
