"""ATIF, harbor's Agent Trajectory Interchange Format (RFC 0001), version 1.7: the winning path as the trajectory, and
other rollouts as trajectories below it. Steps that these share with an earlier path are marked as copied context."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agent.budget import Usage
from agent.counting import counted
from agent.learning.export.documents.exchanges import Call, Exchange, exchanges, patch_of, winner
from agent.learning.export.turns import Turn, Turns
from agent.models import Message
from agent.models.wire import text_of
from agent.run.action_log import task_of
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.version import version

VERSION = "ATIF-v1.7"
Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Atif:
    """One document for each run."""

    file: ClassVar[str] = "trajectory.json"
    """As `agent.learning.export.documents.traj.Traj.file`."""
    others: Annotated[int, Field(ge=0)] = 16
    """The maximum number of rollouts besides the winning one; those with the best states are taken."""

    def __call__(self, run: Run) -> dict[str, Any] | None:
        """The run's rollouts; None if the run has no turns."""
        turns, won = Turns(run), winner(run)
        if won is None or not turns.path(won):
            return None
        name, shown = run.journal.directory.name, {node.id for node in run.tree.path(won)}
        branches = []
        for leaf in self._others(run, turns, won):
            branches.append(_trajectory(run, f"{name}/{leaf}", turns.path(leaf), shown))
            shown |= {node.id for node in run.tree.path(leaf)}
        document = _trajectory(run, f"{name}/{won}", turns.path(won), set()) | {"session_id": name}
        if branches:
            document["steps"].append(_references(len(document["steps"]) + 1, branches))
            document["subagent_trajectories"] = branches
        return document | {"final_metrics": _final(run, len(document["steps"])), "extra": _facts(run)}

    def _others(self, run: Run, turns: Turns, won: NodeId) -> list[NodeId]:
        """The leaves of the other rollouts to show, in the order in which they were made."""
        path = {node.id for node in run.tree.path(won)}
        rollouts = [rollout for rollout in run.rollouts() if rollout.leaf not in path and turns.path(rollout.leaf)]
        best = sorted(rollouts, key=lambda rollout: (-run.tree[rollout.best].value, rollout.leaf))[: self.others]
        return sorted(rollout.leaf for rollout in best)


def _trajectory(run: Run, name: str, turns: Sequence[Turn], shown: Set[NodeId]) -> dict[str, Any]:
    """One path; turns of the nodes in `shown` are in an earlier trajectory."""
    steps = list[Step]()
    for exchange in exchanges(turns):
        copied = {"is_copied_context": True} if exchange.turn.node in shown else {}
        first = {"is_copied_context": True} if shown and not steps else {}
        for message in exchange.given:
            _add(steps, message, first or copied)
        steps.append({"step_id": len(steps) + 1, **_answered(run, exchange), **copied})
    offered = [dict(tool) for tool in turns[-1].tools]
    settings = run.started.settings if run.started else {}
    agent = {
        "name": "ramify",
        "version": version(),
        "model_name": settings.get("policy", {}).get("name"),
        "tool_definitions": offered or None,
        "extra": {"search": settings.get("search", {}).get("name")},
    }
    return {"schema_version": VERSION, "trajectory_id": name, "agent": agent, "steps": steps}


def _add(steps: list[Step], message: Message, copied: dict[str, bool]) -> None:
    """Add a message from outside the turns: a message to the policy, or an answer that could not be read."""
    content = text_of(message.get("content"))
    match message["role"]:
        case "tool":
            steps[-1].setdefault("observation", {"results": []})["results"].append({"content": content})
        case "assistant":
            steps.append({"step_id": len(steps) + 1, "source": "agent", "message": content, **copied})
        case role:
            source = "system" if role == "system" else "user"
            steps.append({"step_id": len(steps) + 1, "source": source, "message": content, **copied})


def _answered(run: Run, exchange: Exchange) -> Step:
    turn, calls = exchange.turn, exchange.calls
    node = run.tree[turn.node]
    step: Step = {"source": "agent", "message": text_of(turn.answer.get("content"))}
    if calls:
        step["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": call.arguments} for call in calls
        ]
        step["observation"] = {"results": [_result(call) for call in calls]}
    if turn.asked is None:
        step["llm_call_count"] = 0
    else:
        usage, logprobs = turn.asked.answer.usage, turn.asked.answer.logprobs
        step |= {"llm_call_count": 1, "model_name": turn.asked.model}
        step["metrics"] = _metrics(usage) | ({"logprobs": list(logprobs)} if logprobs else {})
        if isinstance(thought := turn.answer.get("reasoning_content"), str):
            step["reasoning_content"] = thought
    return step | {"extra": {"node": node.id, "value": node.value, "visits": run.tree.visits(node.id)}}


def _result(call: Call) -> dict[str, Any]:
    return {"source_call_id": call.id, "content": call.seen.text, "extra": {"ok": call.seen.ok}}


def _metrics(usage: Usage) -> dict[str, Any]:
    priced = {} if usage.unpriced_calls else {"cost_usd": usage.cost_usd}
    tokens = {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out}
    return {**tokens, "cached_tokens": usage.tokens_cached, **priced}


def _final(run: Run, steps: int) -> dict[str, Any]:
    """The metrics of the whole search, including all rollouts."""
    spent = {f"total_{key}": value for key, value in _metrics(run.usage).items()}
    more = {"model_calls": run.usage.model_calls, "measurements": run.usage.measurements, "states": len(run.tree)}
    return {**spent, "total_steps": steps, "extra": more}


def _facts(run: Run) -> dict[str, Any]:
    ended = run.ended
    facts = {"status": ended.status, "stop": ended.stop, "verified": ended.verified} if ended else {}
    return {"instance_id": task_of(run).id, "patch": patch_of(run), **facts}


def _references(number: int, branches: Sequence[dict[str, Any]]) -> Step:
    """A step that names the other rollouts, so that readers find them."""
    references = [{"subagent_trajectory_ref": [{"trajectory_id": branch["trajectory_id"]}]} for branch in branches]
    message = f"{counted(len(references), 'other rollout')} of the search"
    return {"step_id": number, "source": "system", "message": message, "observation": {"results": references}}
