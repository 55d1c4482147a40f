"""Refinement: decides whether there is another round of rollouts, what it reads and where it starts, and computes what
it achieved.

Parallel, distil, refine (arXiv 2604.16529): the best summaries of earlier rollouts condition fresh ones from the root
state. Invariants: no raw trace is passed on, and a better earlier result is never replaced by a worse one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent.run.rollouts import Briefing, RoundPlan, Summary
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.settings import RefineSettings

__all__ = ["brief", "summary_of"]


def brief(
    run: Run,
    order: Sequence[NodeId],
    settings: RefineSettings,
    draw: Callable[[Sequence[Summary]], RoundPlan | None] = lambda summaries: None,
) -> Briefing:
    """Make the briefing of the run's next round. `order` has the best states of rollouts
    (`agent.run.rollouts.Candidate.node`), best first; `draw` makes a plan from their summaries
    (`agent.solver.refine.plan`).

    Raises:
        agent.budget.BudgetSpent, agent.errors.RamifyError: as `draw`.
    """
    summaries = tuple(_summaries(run, order)[: settings.priors])
    plan = draw(summaries) if settings.plan and summaries else None
    return Briefing(run.round + 1, summaries, plan)


def _summaries(run: Run, order: Sequence[NodeId]) -> list[Summary]:
    """A summary for each of these states that has one."""
    rollouts, summaries = run.rollouts(), []
    for node in dict.fromkeys(order):
        of_node = (summary_of(run, rollout.leaf) for rollout in rollouts if rollout.best == node)
        if (summary := next(filter(None, of_node), None)) is not None:
            summaries.append(summary)
    return summaries


def summary_of(run: Run, leaf: NodeId) -> Summary | None:
    """The newest summary of a rollout; one by a model is preferred to one read off the journal."""
    summaries = [summary for (of, _), summary in run.summaries.items() if of == leaf]
    return max(reversed(summaries), key=lambda summary: summary.author != "journal", default=None)
