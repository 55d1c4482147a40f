"""Rollouts: the paths from the root to a leaf, each with a summary and the patch that it offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent.run.grade import Grade
from agent.run.tree.evaluation import Evaluation
from agent.run.tree.node import Node, NodeId
from agent.run.tree.tree import Tree

RolloutOutcome = Literal["solved", "submitted", "improved", "unchanged", "worse", "invalid"]
"""How a rollout ended, compared with the root. `solved`: the goal tests pass and nothing broke; `submitted`: submitted
in a run without known goals; `improved`: strictly better by its tests; `unchanged`: neither better nor worse; `worse`:
something broke and nothing was gained; `invalid`: the tests did not run."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A path from the root to a leaf."""

    path: tuple[NodeId, ...]
    """The root first, the leaf last, along edit parents."""
    best: NodeId
    """The node of the path whose patch is offered, never the root: the submitted one, else the one of highest value.
    Among equals, it is the last one of a conversation but the first one of single edits. Candidates (`is_candidate`)
    come before all others."""
    round: int
    """The round in which its leaf was recorded, from 1."""

    @property
    def leaf(self) -> NodeId:
        """The node where it ended."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class Summary:
    """A rollout in words and facts. Lists have no repeats and are in the order of events."""

    leaf: NodeId
    """The leaf of the rollout."""
    author: str
    """`journal`: made from the journal without a model; else the model that wrote it."""
    outcome: RolloutOutcome
    hypothesis: str = ""
    """What the rollout assumed to be wrong."""
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    tests_passed: tuple[str, ...] = ()
    """Tests that fail in the base state and pass in the best state."""
    tests_failed: tuple[str, ...] = ()
    """Goal tests that still fail in the best state, and tests that pass in the base state and fail in it."""
    progress: str = ""
    failure_modes: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    """What may be wrong although no test says so."""
    insights: tuple[str, ...] = ()
    """What another attempt can use."""
    patch_blob: str = ""
    """The name of the blob with the best state's patch."""
    contradictions: tuple[str, ...] = ()
    """Where a model's summary contradicts the journal."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A patch that a rollout offers."""

    rollout: Rollout
    patch: bytes
    """A git patch against the base state."""
    evaluation: Evaluation
    summary: Summary
    grade: Grade
    """How good the verified patch is."""
    source: bytes
    """The part of the patch that changes neither tests nor scratch files (`agent.solver.same_change`)."""
    program: bytes
    """A digest of the program that the patch makes: candidates with the same one are the same change."""

    @property
    def node(self) -> NodeId:
        """The node whose patch it is; ballots name it."""
        return self.rollout.best


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What a next attempt should do, drawn from the experience of an earlier one. SAGE (arXiv 2511.05931) has steps,
    dependencies, limitations and corrective feedback."""

    steps: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Briefing:
    """The briefing of a round about the earlier rounds. It holds no raw traces."""

    round: int
    """The round that reads it, from 2."""
    summaries: tuple[Summary, ...] = ()
    """Summaries of the best rollouts so far, best first."""
    plan: RoundPlan | None = None


def rollouts(tree: Tree, starts: Sequence[NodeId] = (1,)) -> list[Rollout]:
    """All rollouts, in the order of their leaves. `starts` has the id of the first node of each round, ascending."""
    leaves = [node for node in tree if node.parents and not tree.children(node.id)]
    return [_rollout(tree.path(leaf.id), starts) for leaf in leaves]


def is_candidate(node: Node, root: Node) -> bool:
    """Whether the node's patch is worth comparing: it is an answer and, if single edits made it, broke no test."""
    return node.is_answer(root) and (node.by_model or not node.evaluation.harm)


def _rollout(path: tuple[Node, ...], starts: Sequence[NodeId]) -> Rollout:
    best = max(path[1:], key=lambda node: _offer_key(node, path[0]))
    return Rollout(tuple(node.id for node in path), best.id, max(1, sum(path[-1].id >= start for start in starts)))


def _offer_key(node: Node, root: Node) -> tuple[bool, bool, bool, float, int]:
    """A sort key: the greater, the better the patch of the node."""
    age = node.id if node.by_model else -node.id
    return is_candidate(node, root), node.evaluation.solved, node.submitted, node.value, age
