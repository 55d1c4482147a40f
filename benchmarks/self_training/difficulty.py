"""Selects tasks by difficulty: useful tasks are solved sometimes, but not always.

The rate of a task is the share of right edits among those tried on it, in all runs so far. A policy that imitates right
edits learns nothing from a task with rate 0, and nothing new from one above the limit. The rate of an untried task is
unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agent.policy.edit.counts import trials
from agent.run.credit import success_rate
from agent.run.run import Run


def rates(runs: Iterable[Path]) -> dict[str, float]:
    """The rates by the name of the run's folder, which in a batch is the task's id. Runs that tried nothing are left
    out."""
    tried: dict[str, int] = {}
    right: dict[str, int] = {}
    for path in runs:
        with Run.read(path) as run:
            for trial in trials(run) if len(run.tree) else ():
                tried[path.name] = tried.get(path.name, 0) + 1
                right[path.name] = right.get(path.name, 0) + trial.right
    return {name: right[name] / count for name, count in tried.items()}


def rollout_rates(runs: Iterable[Path]) -> dict[str, float]:
    """The same as `rates` for chat policies: the share of rollouts that succeeded."""
    found: dict[str, float] = {}
    for path in runs:
        with Run.read(path) as run:
            rate = success_rate(run)
            found |= {path.name: rate} if rate is not None else {}
    return found


def fitting(names: Sequence[str], known: Mapping[str, float], most: float) -> list[str]:
    """The tasks with a rate above 0 and below `most`, the easiest first, then those whose rate is unknown, in order."""
    middling = [name for name in names if 0 < known.get(name, 0.0) < most]
    return sorted(middling, key=lambda name: -known[name]) + [name for name in names if name not in known]
