"""Rows for a verifier: a state described in words, and whether a right solution can be reached from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.evaluate.goal_tests import resolve_goals
from agent.evaluate.value import EvaluationInput
from agent.evaluate.value.prm import ANSWERS, verifier_question
from agent.evaluate.value.tests import PassingTests
from agent.learning.export import GOAL_UNKNOWN, Row, skipped
from agent.learning.export.provenance import provenance
from agent.learning.export.turns import Turns
from agent.run.action_log import task_of
from agent.run.credit import OutcomeKind, goals_known, node_credit, outcome
from agent.run.eviction import kept_patch
from agent.run.run import Run

NO_PATCH = "the patch of the state was not kept"


@dataclass(frozen=True, slots=True)
class Verifier:
    """One row for each measured state that changes something. The question is that of `--value prm`, and the answer yes
    if at least half of the leaves below the state are right: a Monte Carlo estimate as in Math-Shepherd (arXiv
    2312.08935), whose mean is in `value`."""

    outcome: OutcomeKind = "solved"
    """What counts as right: whether leaves are solved, or their value."""

    def __call__(self, run: Run) -> Iterator[Row]:
        """The rows of a run."""
        turns, credit = Turns(run), node_credit(run.tree, outcome(run, self.outcome))
        base = run.tree.root.report
        task = replace(task_of(run), goal_tests=resolve_goals(task_of(run), base))
        for node in run.tree:
            taken = turns.of(node.id)
            if not taken or node.state_hash == run.tree.root.state_hash:
                continue
            if self.outcome == "solved" and not goals_known(run):
                yield skipped(GOAL_UNKNOWN)
                continue
            if not (blob := kept_patch(run, node.id)):
                yield skipped(NO_PATCH)
                continue
            patch = run.journal.get_blob(blob)
            case = EvaluationInput(task, run.tree.path(node.parents[0]), node.report)
            prompt = verifier_question(task, base, node.report, patch, PassingTests().evaluate(case).notes)
            earned = credit[node.id]
            yield {
                "prompt": [{"role": "user", "content": prompt}],
                "completion": [{"role": "assistant", "content": ANSWERS[0 if earned.value >= 0.5 else 1]}],
                "value": earned.value,
                "leaves": earned.leaves,
                "provenance": provenance(run, node.id, taken),
            }
