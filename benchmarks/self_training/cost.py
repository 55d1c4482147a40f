"""Estimates what a round will cost, from its limits and from what earlier rounds of the registry cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from agent.counting import counted
from agent.errors import RamifyError
from agent.run.paths import runs_in
from agent.run.run import Run
from benchmarks.self_training.playing import Conditions


@dataclass(frozen=True, slots=True)
class _Search:
    """The cost of one search."""

    states: int
    tokens: int
    seconds: float


def planned(folder: Path, name: str, tasks: int, held_out: int, conditions: Conditions, max_steps: int | None) -> str:
    """Describe what the round `name` costs at most and, going by earlier rounds in `folder`, probably. The held-out
    bugs are searched twice. `max_steps`: steps of the training; -1: one epoch; None: nothing is trained."""
    most = conditions.max_tried * (tasks + 2 * held_out)
    steps = {None: "no training", -1: "one epoch of training"}.get(
        max_steps, f"at most {counted(max_steps or 0, 'step')} of training"
    )
    searched = f"{counted(tasks, 'task')} once and {counted(held_out, 'held-out bug')} twice"
    limits = f"{name} will search {searched}: at most {counted(most, 'state')}; {steps}"
    earlier = [path for path in sorted(folder.glob("v*")) if path.name != name]
    learning = _searches(earlier, "tasks")
    comparing = _searches(earlier, "before") + _searches(earlier, "after")
    if not learning or not comparing:
        return f"{limits}. What that takes is not known before the first round of a registry has ended"
    return f"{limits}. By earlier rounds: {_estimate(learning, tasks, comparing, 2 * held_out)}{_training(earlier)}"


def _searches(rounds: Sequence[Path], part: str) -> list[_Search]:
    """The searches of one part of these rounds. Searches that cannot be read are left out."""
    found = []
    for batch in (place / part for place in rounds if (place / part).is_dir()):
        with suppress(RamifyError):
            for path in runs_in([batch]):
                with Run.read(path) as run:
                    found.append(_Search(len(run.tree) - 1, run.usage.tokens, run.elapsed_s))
    return found


def _estimate(learning: Sequence[_Search], tasks: int, comparing: Sequence[_Search], played: int) -> str:
    states, tokens, seconds = (
        fmean(getattr(each, of) for each in learning) * tasks + fmean(getattr(each, of) for each in comparing) * played
        for of in ("states", "tokens", "seconds")
    )
    return f"about {states:.0f} states, {tokens:.0f} tokens and {_duration(seconds)} of searching one after another"


def _training(rounds: Sequence[Path]) -> str:
    """What the latest training took; empty if there was none, or if it was not recorded."""
    files = [place / "training" / "metrics.json" for place in rounds]
    for file in reversed([file for file in files if file.is_file()]):
        with suppress(ValueError, KeyError):
            metrics = json.loads(file.read_bytes())
            return f"; the last training took {counted(metrics['steps'], 'step')} and {_duration(metrics['seconds'])}"
    return ""


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
