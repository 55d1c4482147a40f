"""Rows for a critic: a whole attempt as text, and whether it solved the task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agent.actions.excerpt import excerpt
from agent.learning.export import GOAL_UNKNOWN, Row, skipped
from agent.learning.export.provenance import provenance
from agent.learning.export.turns import MERGE, Turn, Turns, is_merge
from agent.models import Message
from agent.prompts import render
from agent.run.action_log import task_of
from agent.run.credit import goals_known
from agent.run.run import Run
from agent.untrusted import fence, issue_text


@dataclass(frozen=True, slots=True)
class Critique:
    """One row for each leaf. The answer is the judgement `YES` or `NO`, whose probability a server can report (as in
    the verifier of SWE-Gym). The prompt holds nothing that was measured after the attempt."""

    attempt_bytes: Annotated[int, Field(ge=1000)] = 60_000
    """The maximum size of the attempt's text in bytes; its middle is left out."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, issue = Turns(run), issue_text(task_of(run).statement)
        for rollout in run.rollouts():
            if is_merge(run.tree, rollout.leaf):
                yield skipped(MERGE)
            elif not goals_known(run):
                yield skipped(GOAL_UNKNOWN)
            elif taken := turns.path(rollout.leaf):
                solved = run.solved(rollout.leaf)
                judgement = f"<judgement>{'YES' if solved else 'NO'}</judgement>"
                yield {
                    "prompt": [{"role": "user", "content": self._question(issue, taken)}],
                    "completion": [{"role": "assistant", "content": judgement}],
                    "label": solved,
                    "value": run.tree[rollout.leaf].value,
                    "provenance": provenance(run, rollout.leaf, taken),
                }

    def _question(self, issue: str, taken: Sequence[Turn]) -> str:
        messages = [_line(message) for turn in taken for message in (turn.answer, *turn.results)]
        attempt = excerpt("\n\n".join(messages), self.attempt_bytes)[0]
        fences = {"issue_fence": fence("issue", issue), "fence": fence("attempt", attempt)}
        return render("export_critique", issue=issue, attempt=attempt, **fences)


def _line(message: Message) -> str:
    """A message as text, with each call on a line."""
    calls = [call["function"] for call in message.get("tool_calls", ())]
    called = [f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}" for call in calls]
    return "\n".join(filter(None, (f"{message['role']}: {message.get('content') or ''}".rstrip(), *called)))
