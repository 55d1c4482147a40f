"""Trajectories: what other programs recorded of one rollout, read as the deeds of one of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.parsing import loads
from agent.run.action_log import Deed

__all__ = ["Trajectory", "read_trajectory"]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A rollout of another program."""

    format: str
    """What wrote it, and which version of its format."""
    deeds: tuple[Deed, ...]
    ended: str
    """Its exit status, in its own words."""
    patch: str = ""
    """What was submitted."""


def read_trajectory(path: Path) -> Trajectory:
    """The trajectory in a file: mini-swe-agent's `*.traj.json`, SWE-agent's `*.traj`, or OpenHands' events.

    Raises:
        agent.errors.UsageError: it cannot be read, or is none of these.
    """
    try:
        data = loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is neither a run nor a trajectory: it is no JSON ({error})") from error
    return _reader(path, data)(path, data)


def _reader(path: Path, data: Any) -> Callable[[Path, Any], Trajectory]:
    from agent.analysis.trajectories import mini, openhands, sweagent

    keys = data.keys() if isinstance(data, dict) else ()
    if "messages" in keys:
        return mini.read
    if openhands.is_stream(data["trajectory"] if "trajectory" in keys else data):
        return openhands.read
    if "trajectory" in keys or "attempts" in keys:
        return sweagent.read
    if "history" in keys:
        return openhands.read
    raise UsageError(
        f"{path} is no trajectory of mini-swe-agent (it has no `messages`), none of SWE-agent (it has no "
        "`trajectory`) and none of OpenHands (it is no list of events and has no `history`)"
    )
