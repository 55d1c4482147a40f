"""Where the costs of a run went: to each activity, and to each line of work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from agent.budget import Usage
from agent.run.events import Asked, Spent
from agent.run.rollouts import Rollout
from agent.run.tree.node import ROOT, NodeId
from agent.run.tree.tree import Tree

Activity = Literal["propose", "judge", "choose", "plan", "measure"]
"""Proposing changes, judging states, choosing among rollouts, planning rounds and parts, and running tests."""

_ACTIVITIES: dict[str, Activity] = {
    "policy": "propose",
    "model": "propose",
    "value": "judge",
    "judge": "choose",
    "summary": "choose",
    "crosscheck": "choose",
    "plan": "plan",
}


def activity_of(event: Asked | Spent) -> Activity:
    """Return the activity that a cost was for."""
    if isinstance(event, Asked):
        return _ACTIVITIES.get(event.purpose, "judge")
    return _ACTIVITIES.get(event.what, "measure")


def costs_of_lines(tree: Tree, rollouts: Sequence[Rollout]) -> list[Usage]:
    """The model calls of each rollout, in their order. States that several rollouts share count for the first."""
    return [
        sum((step.usage for node_id in states for step in tree[node_id].steps), Usage()) for states in _own(rollouts)
    ]


def seconds_of_lines(node_seconds: Mapping[NodeId, float], rollouts: Sequence[Rollout]) -> list[float | None]:
    """The seconds of each rollout, from `Run.node_seconds`; None if those of a state are unknown. States that several
    rollouts share count for the first."""
    known = [[node_seconds.get(node_id) for node_id in states if node_id != ROOT] for states in _own(rollouts)]
    return [None if None in line else sum(seconds or 0.0 for seconds in line) for line in known]


def _own(rollouts: Sequence[Rollout]) -> Iterator[list[NodeId]]:
    """Yield for each rollout its states that no earlier rollout has."""
    counted = set[NodeId]()
    for rollout in rollouts:
        yield [node_id for node_id in rollout.path if node_id not in counted]
        counted.update(rollout.path)
