"""What each rollout of a run came to, for `ramify show --summaries`."""

from __future__ import annotations

from collections.abc import Iterator

from agent.actions.excerpt import printable
from agent.run.rollouts import Rollout, Summary
from agent.run.run import Run
from agent.solver.summaries import JOURNAL, summarise
from agent.untrusted import visible

__all__ = ["block", "draw"]

_FIELDS = {
    "hypothesis": "hypothesis",
    "read": "files_read",
    "changed": "files_changed",
    "ran": "commands",
    "mended": "tests_passed",
    "failing": "tests_failed",
    "progress": "progress",
    "failed by": "failure_modes",
    "risk": "risks",
    "insight": "insights",
    "not so": "contradictions",
}
"""What each line is called, and the field of a summary that it shows."""


def draw(run: Run) -> Iterator[str]:
    """A block for each summary of each rollout, in the order of their leaves; where none was recorded, the one that can
    be read off the journal."""
    rollouts = run.rollouts()
    if not rollouts:
        yield "no rollout yet: no state below the base state was measured"
    for rollout in rollouts:
        recorded = [summary for (leaf, _), summary in run.summaries.items() if leaf == rollout.leaf]
        for summary in recorded or [summarise(run, None, rollout)]:
            yield block(rollout, summary)


def block(rollout: Rollout, summary: Summary) -> str:
    """One summary, a fact a line."""
    path = " > ".join(map(str, rollout.path))
    wave = f", wave {rollout.round}" if rollout.round > 1 else ""
    author = "" if summary.author == JOURNAL else f", in the words of {summary.author}"
    lines = [f"rollout {path}, best state {rollout.best}{wave}{author}: {summary.outcome}"]
    for name, field in _FIELDS.items():
        value = getattr(summary, field)
        said = (value,) if isinstance(value, str) else value
        lines += [f"  {name:<11}{' '.join(each.split())}" for each in said if each]
    return printable(visible("\n".join(lines)).encode()) + "\n"
