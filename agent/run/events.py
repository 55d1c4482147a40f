"""Events: the facts that a run consists of, in the form in which its journal keeps them.

Invariant: what earlier versions wrote can be read. A new field has a default, and no field changes its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from agent.budget import Usage
from agent.measure import SuiteReport
from agent.models import Completion
from agent.run.ballots import Ballot
from agent.run.commands import Order
from agent.run.message_store import Passage
from agent.run.rollouts import Briefing, Summary
from agent.run.schedule import ScheduleEntry
from agent.run.tree.choice import Choice
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, NodeId, Work
from sandboxes import Snapshot

VERSION = 1


@dataclass(frozen=True, slots=True)
class Started:
    """A run began: everything needed to resume it the same way."""

    task: dict[str, Any]
    settings: dict[str, Any]
    base: Snapshot
    version: int = VERSION
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Spent:
    """Measurements were used, or a failed model call cost something. `what` says what for: `tests`, or the purpose of
    the call. Journals of earlier versions hold all model calls in this form."""

    usage: Usage
    what: str = ""
    node: NodeId | None = None
    kind: Literal["spent"] = "spent"


@dataclass(frozen=True, slots=True)
class Asked:
    """A model was asked and has answered. `answer.usage` is the cost."""

    model: str
    request: str
    """The digest of everything that the answer depends on (`agent.engine.model_calls.Request`)."""
    conversation: Passage
    """The tools and the messages; `agent.run.run.Run.conversations` has the whole of them."""
    sampling: dict[str, Any]
    answer: Completion
    node: NodeId | None = None
    """The node that the request was made for; for a state that is not a node yet, its parent."""
    purpose: str = ""
    """`policy`, `value`, or what else the answer was for."""
    kind: Literal["asked"] = "asked"


Refusal = Literal["TooLong", "ToolsRefused"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A model's server rejected a request because of its content, at no cost. The fields are as in `Asked`."""

    model: str
    request: str
    conversation: Passage
    sampling: dict[str, Any]
    error: Refusal
    """The class in `agent.errors`."""
    reason: str
    node: NodeId | None = None
    purpose: str = ""
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class Begun:
    """An expansion began. It is in flight until an event whose `flight` has its number; if none follows, it was lost
    with its process."""

    choice: Choice
    number: int
    """How many expansions had started before this one; an expansion that is restarted gets a new number."""
    index: int
    """Its ordinal among the expansions of the node by this policy, from 0; it stays the same when the expansion is
    restarted."""
    policy_id: str = ""
    """The policy that proposes; empty if no policy is asked."""
    nodes: int = 0
    """How many nodes there were when it first began; its policy sees no later ones."""
    attempts: int = 0
    """How many expansions of the node had ended then; its policy sees no later ones."""
    elapsed_s: float | None = None
    """The run's time, in seconds of all sessions, at its start; None if an earlier version wrote the run."""
    kind: Literal["begun"] = "begun"

    @property
    def work(self) -> Work:
        """The key under which the tree counts this expansion."""
        return self.choice.node, self.choice.act, self.choice.other, self.policy_id


@dataclass(frozen=True, slots=True)
class Added:
    """A new state was measured and is a node."""

    node: Node
    elapsed_s: float = 0.0
    """Seconds of all sessions so far; `Merged`, `Remeasured` and `Failed` have the same field."""
    choice: Choice | None = None
    """The selection that led here; `Merged`, `Remeasured` and `Failed` have the same field."""
    flight: ScheduleEntry | None = None
    """Its place among the expansions that began and ended; `Merged`, `Remeasured`, `Failed` and `Exhausted` have the
    same field."""
    kind: Literal["added"] = "added"


@dataclass(frozen=True, slots=True)
class Merged:
    """An expansion of `parent` led to a state that the tree had already."""

    parent: NodeId
    node: NodeId
    label: str = ""
    policy_id: str = ""
    elapsed_s: float = 0.0
    choice: Choice | None = None
    proposal: str = ""
    """What was proposed, in canonical form (`agent.run.tree.tree.proposal_of`)."""
    flight: ScheduleEntry | None = None
    kind: Literal["merged"] = "merged"


@dataclass(frozen=True, slots=True)
class Remeasured:
    """The state of a node was measured again. The node does not change."""

    node: NodeId
    evaluation: Evaluation
    report: SuiteReport
    elapsed_s: float = 0.0
    choice: Choice | None = None
    flight: ScheduleEntry | None = None
    kind: Literal["remeasured"] = "remeasured"


@dataclass(frozen=True, slots=True)
class Extended:
    """More tests of the root state were run; they are part of its report from now on."""

    report: SuiteReport
    """The report of these tests alone."""
    kind: Literal["extended"] = "extended"


@dataclass(frozen=True, slots=True)
class Failed:
    """An expansion of `node` ended without a state or a measurement."""

    node: NodeId
    reason: str
    label: str = ""
    policy_id: str = ""
    elapsed_s: float = 0.0
    choice: Choice | None = None
    flight: ScheduleEntry | None = None
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A policy, or all of them, have nothing left to propose at `node`."""

    node: NodeId
    policy_id: str = ""
    """The policy that has nothing left to propose; empty: all policies."""
    flight: ScheduleEntry | None = None
    """The place of the expansion that this event ended; None if it ended none."""
    kind: Literal["exhausted"] = "exhausted"


@dataclass(frozen=True, slots=True)
class Noted:
    """A fact about a state that cost something to find (a coverage spectrum, a judge's opinion)."""

    node: NodeId
    key: str
    data: Any
    kind: Literal["noted"] = "noted"


@dataclass(frozen=True, slots=True)
class Steered:
    """A person gave an order."""

    order: Order
    inbox_bytes: int = 0
    """How many bytes of the queue file (`agent.run.command_queue`) had been read, this order included."""
    kind: Literal["steered"] = "steered"


@dataclass(frozen=True, slots=True)
class Summarised:
    """A rollout was summarised."""

    summary: Summary
    kind: Literal["summarised"] = "summarised"


@dataclass(frozen=True, slots=True)
class Voted:
    """A judge voted on a group of candidates."""

    ballot: Ballot
    kind: Literal["voted"] = "voted"


@dataclass(frozen=True, slots=True)
class Round:
    """A further round of rollouts from the root began, with what the earlier ones learned."""

    number: int
    """The number of the round, from 2: the first round has no event."""
    first: NodeId
    """The id that its first node gets."""
    briefing: Briefing | None = None
    """None: the round reads nothing about earlier ones."""
    repairs: tuple[Order, ...] = ()
    """The starting points of rollouts that do not begin at the root (`agent.solver.refine.local`)."""
    kind: Literal["round"] = "round"


@dataclass(frozen=True, slots=True)
class Ended:
    """A session ended. A later one may follow."""

    status: str
    stop: str
    best: NodeId | None = None
    verified: bool = False
    patch_blob: str | None = None
    elapsed_s: float = 0.0
    final: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    """The message of the error that ended it, if there was one."""
    kind: Literal["ended"] = "ended"


Event = (
    Started
    | Spent
    | Asked
    | Refused
    | Begun
    | Added
    | Merged
    | Remeasured
    | Extended
    | Failed
    | Exhausted
    | Noted
    | Steered
    | Summarised
    | Voted
    | Round
    | Ended
)
