"""mini-swe-agent's trajectory (`mini-swe-agent-1.1`): the winning path as one conversation.

Shell commands are written as they are, other tool calls as their name and arguments, which no shell accepts. The output
of a call is the text that the policy read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from agent.actions import Shell
from agent.budget import Stop, Usage
from agent.learning.export.documents.exchanges import Call, Exchange, exchanges, patch_of, winner
from agent.learning.export.turns import WORKDIR, Turns, as_sent
from agent.run.action_log import task_of
from agent.run.run import Run

FORMAT = "mini-swe-agent-1.1"
_LIMITS = {
    **dict.fromkeys(("NODES", "MEASUREMENTS", "CALLS", "TOKENS", "COST", "BATCH"), "LimitsExceeded"),
    Stop.TIME.name: "TimeExceeded",
}


@dataclass(frozen=True, slots=True)
class Traj:
    """One document for each run."""

    file: ClassVar[str] = "{name}.traj.json"
    """The file's name; `{name}` stands for that of the run."""

    def __call__(self, run: Run) -> dict[str, Any] | None:
        """The run's winning path; None if it has no turns."""
        leaf = winner(run)
        turns = Turns(run).path(leaf) if leaf is not None else []
        if not turns:
            return None
        patch, status = patch_of(run), _exit_status(run)
        submitted = {"exit_status": status, "submission": patch}
        messages = [message for exchange in exchanges(turns) for message in _messages(exchange)]
        return {
            "trajectory_format": FORMAT,
            "instance_id": task_of(run).id,
            "info": _info(run) | submitted,
            "messages": [*messages, {"role": "exit", "content": patch, "extra": submitted}],
        }


def _info(run: Run) -> dict[str, Any]:
    """The settings that name the solver, without any that may hold a key."""
    settings = run.started.settings if run.started else {}
    name = {key: settings.get(key, {}).get("name", "") for key in ("policy", "search", "value")}
    place = task_of(run).workspace.mount or WORKDIR
    return {
        "model_stats": {"instance_cost": _cost(run.usage), "api_calls": run.usage.model_calls},
        "config": {
            "agent": {"search": name["search"], "value": name["value"], "seed": settings.get("seed")},
            "agent_type": "ramify",
            "model": {"model_name": name["policy"]},
            "model_type": "ramify",
            "environment": {"cwd": place},
            "environment_type": settings.get("sandbox", {}).get("kind", ""),
        },
    }


def _cost(usage: Usage) -> float | None:
    """The cost in dollars; None if the price is unknown."""
    return None if usage.unpriced_calls else usage.cost_usd


def _exit_status(run: Run) -> str:
    """The exit status, in mini-swe-agent's terms if it has one."""
    if run.ended is None:
        return ""
    otherwise = "Submitted" if run.ended.patch_blob else run.ended.stop.capitalize()
    return _LIMITS.get(run.ended.stop, otherwise)


def _messages(exchange: Exchange) -> Iterator[dict[str, Any]]:
    yield from map(as_sent, exchange.given)
    actions = [{"command": _command(call)} | _id(exchange, call) for call in exchange.calls]
    asked = exchange.turn.asked
    cost = {"cost": _cost(asked.answer.usage)} if asked else {}
    yield as_sent(exchange.turn.answer) | {"extra": {"actions": actions, **cost}}
    for call in exchange.calls:
        output = {"raw_output": call.seen.text, "returncode": 0 if call.seen.ok else 1}
        role = {"role": "tool" if exchange.native else "user", "content": call.seen.text}
        yield role | _id(exchange, call) | {"extra": output}


def _id(exchange: Exchange, call: Call) -> dict[str, str]:
    return {"tool_call_id": call.id} if exchange.native else {}


def _command(call: Call) -> str:
    return call.action.command if isinstance(call.action, Shell) else f"{call.name} {json.dumps(call.arguments)}"
