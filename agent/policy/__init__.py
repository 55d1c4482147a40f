"""Who proposes: a policy is shown a position of the search and says what to do there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from agent.actions import Action
from agent.budget import Usage
from agent.models import Ask, directly
from agent.policy.chat.conventions import Convention
from agent.run.memo import Memo
from agent.run.rollouts import Briefing
from agent.run.tree.tree import Node, Step
from agent.task import Task
from sandboxes import Sandbox

__all__ = ["Policy", "Position", "Proposal", "Tried"]


@dataclass(frozen=True, slots=True)
class Tried:
    """What an earlier line of work that branched off at a node came to."""

    label: str
    """A few words on what was done."""
    changes: str = ""
    """What it changed in the node's state, as a git patch."""
    node: Node | None = None
    """The last state of the line; None: it failed."""
    known: bool = False
    """That state had been reached before, from here or elsewhere."""
    reason: str = ""
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a policy is asked to act: a node of the tree, and the turns already taken from it."""

    task: Task
    path: tuple[Node, ...]
    """From the root to the node that is being expanded."""
    index: int
    """Expansions of that node that were begun before this one in the present wave: the n-th child is proposal n
    (0-based)."""
    siblings: tuple[Node, ...]
    """The node's children so far."""
    steps: tuple[Step, ...]
    """Turns already taken in this expansion, oldest first."""
    box: Sandbox
    """A fork of the present state, for reading."""
    tried: tuple[Tried, ...] = ()
    """What earlier expansions of the node came to, oldest first."""
    continues: bool = False
    """The conversation of the path continues; else the line branches off here, or begins."""
    kind: str = ""
    """The kind of child that the search wants (`agent.run.tree.choice.Choice.kind`)."""
    hint: str = ""
    """What a person wants to be tried in this expansion, or what went wrong before
    (`agent.run.tree.choice.Choice.hint`)."""
    briefing: Briefing | None = None
    """What earlier waves of rollouts have learned, at the first expansion of a rollout of a later wave."""
    earlier: frozenset[str] = frozenset()
    """What was proposed here in earlier waves, in canonical form (`agent.run.tree.tree.proposal_of`)."""
    recall: Callable[[], str] = str
    """What is remembered of repairs of other issues that fits here; empty where nothing is."""
    layout: Callable[[], str] = str
    """What lies in the root of the repository; empty where that is not known."""
    conventions: Callable[[], tuple[Convention, ...]] = tuple
    """What the repository's own files tell those who change it."""
    ask: Ask = directly
    """How a model is asked: the run pays for the call and records it, or refuses it."""
    once: Memo = field(default=lambda key, find: find())
    """What the whole run is to know: found by whoever wants it first, and recorded."""

    @property
    def node(self) -> Node:
        """The node that is being expanded."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What to do next. Neither actions nor a message: nothing is left to propose here, and the node is closed."""

    actions: tuple[Action, ...]
    message: str = ""
    prior: float = 1.0
    """In [0, 1]: how likely the policy thinks this to be right. Of an expansion of several turns the geometric mean
    counts."""
    label: str = ""
    """A few words for people."""
    usage: Usage = field(default_factory=Usage)
    """What the calls of `Position.ask` behind it cost, for the record of the turn; the run has counted them."""
    final: bool = True
    """The expansion ends here and its state is measured; False: the policy wants to see the observations first."""
    line_end: str = ""
    """Why the line of work ends with this turn, or, where nothing is proposed, with the one before; empty where it
    continues, or ends by a `submit`."""


class Policy(Protocol):
    """Proposes actions. Deterministic for a position and a seed; must not write to `position.box`.

    One policy object serves all workers of a run, at once.
    """

    @property
    def policy_id(self) -> str:
        """Name and version, for the record (`mutate/1`, `chat/openai/gpt-x`)."""
        ...

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The next turn.

        Raises:
            agent.errors.ModelError, agent.errors.PolicyError: nothing can be proposed, and why.
        """
        ...
