"""Trajectories: what other programs recorded of one rollout, read as the deeds of one of ours."""

from __future__ import annotations

from dataclasses import dataclass

from agent.run.action_log import ActionRecord

__all__ = ["Trajectory"]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A rollout of another program."""

    format: str
    """What wrote it, and which version of its format."""
    action_records: tuple[ActionRecord, ...]
    ended: str
    """Its exit status, in its own words."""
    patch: str = ""
    """What was submitted."""
