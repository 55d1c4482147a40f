"""Where the costs of a run went: to each activity, and to each line of work."""

from __future__ import annotations

from typing import Literal

from agent.budget import Usage
from agent.run.events import Asked, Spent
from agent.run.rollouts import Rollout
from agent.run.tree.tree import Tree

__all__ = ["Activity", "activity_of", "costs_of_lines"]

Activity = Literal["propose", "judge", "choose", "plan", "measure"]
"""Proposing changes, judging states, choosing among rollouts, planning rounds and parts, and running tests."""

_ACTIVITIES: dict[str, Activity] = {
    "policy": "propose",
    "value": "judge",
    "judge": "choose",
    "summary": "choose",
    "crosscheck": "choose",
    "plan": "plan",
}


def activity_of(event: Asked | Spent) -> Activity:
    """What a cost was for."""
    if isinstance(event, Asked):
        return _ACTIVITIES.get(event.purpose, "judge")
    return _ACTIVITIES.get(event.what, "measure")


def costs_of_lines(tree: Tree, rollouts: list[Rollout]) -> list[Usage]:
    """The model calls of each rollout, in their order. States that several rollouts share count for the first."""
    counted = set[int]()
    costs = list[Usage]()
    for rollout in rollouts:
        new = [node_id for node_id in rollout.path if node_id not in counted]
        counted.update(new)
        costs.append(sum((step.usage for node_id in new for step in tree[node_id].steps), Usage()))
    return costs
