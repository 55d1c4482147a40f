"""The Policy protocol: a policy sees a position in the search tree and proposes what to do there."""

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
from agent.run.tree.node import Node, Step
from agent.task import Task
from sandboxes import Sandbox

__all__ = ["Policy", "Position", "Proposal", "Tried"]


@dataclass(frozen=True, slots=True)
class Tried:
    """An earlier line of work that branched off at a node, and its result."""

    label: str
    """A few words on what was done."""
    changes: str = ""
    """Its changes to the node's state, as a git patch."""
    node: Node | None = None
    """The last state of the line; None if it failed."""
    known: bool = False
    """Whether that state had been reached before, from here or elsewhere."""
    reason: str = ""
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a policy is asked to act: a node of the tree, and the turns already taken from it."""

    task: Task
    path: tuple[Node, ...]
    """From the root to the node that is being expanded."""
    index: int
    """How many expansions of that node began earlier in this round: the n-th child is proposal n (0-based)."""
    siblings: tuple[Node, ...]
    """The node's children so far."""
    steps: tuple[Step, ...]
    """Turns already taken in this expansion, oldest first."""
    box: Sandbox
    """A fork of the present state, for reading."""
    tried: tuple[Tried, ...] = ()
    """Results of earlier expansions of the node, oldest first."""
    references: tuple[Tried, ...] = ()
    """States of other branches, with their changes to the base state, the best first."""
    continues: bool = False
    """True: the conversation of the path continues; False: a line of work branches off or begins here."""
    kind: str = ""
    """The kind of child that the search asks for (`agent.run.tree.choice.Choice.kind`)."""
    hint: str = ""
    """What a person wants this expansion to try, or what went wrong before (`agent.run.tree.choice.Choice.hint`)."""
    briefing: Briefing | None = None
    """What earlier rounds of rollouts have learned; set at the first expansion of a rollout in a later round."""
    earlier: frozenset[str] = frozenset()
    """Proposals made here in earlier rounds, in canonical form (`agent.run.tree.tree.proposal_of`)."""
    recall: Callable[[], str] = str
    """Returns lessons from repairs of other issues that fit here; empty if there are none."""
    layout: Callable[[], str] = str
    """Returns the names in the root of the repository; empty if they are not known."""
    conventions: Callable[[], tuple[Convention, ...]] = tuple
    """Returns the repository's own instructions for contributors."""
    ask: Ask = directly
    """Asks a model: the run pays for the call and records it, or refuses it."""
    memo: Memo = field(default=lambda key, find: find())
    """Computes a fact once for the whole run, and records it."""

    @property
    def node(self) -> Node:
        """The node that is being expanded."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A turn. Without actions and a message, the policy has nothing left to propose here, and the node is closed."""

    actions: tuple[Action, ...]
    message: str = ""
    prior: float = 1.0
    """In [0, 1]: how likely the policy thinks this is right. An expansion of several turns has their geometric mean."""
    label: str = ""
    """A few words for people."""
    usage: Usage = field(default_factory=Usage)
    """The cost of the `Position.ask` calls behind it, for the record of the turn; the run has already counted them."""
    final: bool = True
    """True: the expansion ends here and its state is measured; False: the policy first wants to see observations."""
    line_end: str = ""
    """Why the line of work ends with this turn, or with the previous one if nothing is proposed; empty if it continues
    or ends with a `submit`."""


class Policy(Protocol):
    """Proposes actions. Deterministic for a position and a seed; must not write to `position.box`.

    One policy object serves all workers of a run concurrently.
    """

    @property
    def policy_id(self) -> str:
        """Name and version, for the record (`mutate/1`, `chat/openai/gpt-x`)."""
        ...

    def propose(self, position: Position, rng: Random) -> Proposal:
        """Propose the next turn.

        Raises:
            agent.errors.ModelError, agent.errors.PolicyError: nothing can be proposed; the message says why.
        """
        ...
