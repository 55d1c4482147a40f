"""The summaries of a run's rollouts, for `ramify show --summaries`."""

from __future__ import annotations

from collections.abc import Iterator

from agent.actions.excerpt import printable
from agent.run.rollouts import Rollout, Summary
from agent.run.run import Run
from agent.solver.summaries import JOURNAL, summarise
from agent.untrusted import visible

_FIELDS = {
    "hypothesis": "hypothesis",
    "read": "files_read",
    "changed": "files_changed",
    "ran": "commands",
    "fixed": "tests_passed",
    "failing": "tests_failed",
    "progress": "progress",
    "failure": "failure_modes",
    "risk": "risks",
    "insight": "insights",
    "wrong": "contradictions",
}
"""The name of each line, and the field of a summary that it shows."""


def draw(run: Run) -> Iterator[str]:
    """A block for each summary of each rollout, in the order of the leaves. A rollout without a recorded summary gets
    one from the journal."""
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
    number = f", round {rollout.round}" if rollout.round > 1 else ""
    author = "" if summary.author == JOURNAL else f", in the words of {summary.author}"
    lines = [f"rollout {path}, best state {rollout.best}{number}{author}: {summary.outcome}"]
    for name, field in _FIELDS.items():
        value = getattr(summary, field)
        texts = (value,) if isinstance(value, str) else value
        lines += [f"  {name:<11}{' '.join(text.split())}" for text in texts if text]
    return printable(visible("\n".join(lines)).encode()) + "\n"
