"""Reads a trajectory of any known program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.analysis.trajectories import Trajectory, mini, openhands, sweagent
from agent.errors import UsageError
from agent.parsing import loads


def read_trajectory(path: Path) -> Trajectory:
    """The trajectory in a file: mini-swe-agent's `*.traj.json`, SWE-agent's `*.traj`, or OpenHands' events.

    Raises:
        agent.errors.UsageError: the file cannot be read, or has none of these formats.
    """
    try:
        data = loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is neither a run nor a trajectory: it is not valid JSON ({error})") from error
    return _reader(path, data)(path, data)


def _reader(path: Path, data: Any) -> Callable[[Path, Any], Trajectory]:
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
        f"{path} is not a trajectory of mini-swe-agent (it has no `messages`), SWE-agent (it has no `trajectory`) or "
        "OpenHands (it is not a list of events and has no `history`)"
    )
