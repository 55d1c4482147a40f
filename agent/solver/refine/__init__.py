"""Refinement: what a further wave of rollouts is told, whether there is one, where it begins, and what it was worth.

Parallel, distil, refine (arXiv 2604.16529): the best summaries of earlier rollouts condition fresh ones from the base
state. Laws: no raw trace is passed on, and what was better before is never replaced by what is worse now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agent.run.rollouts import Briefing, Plan, Summary
from agent.run.run import Run
from agent.run.tree.tree import NodeId
from agent.settings import RefineSettings

__all__ = ["brief", "priors", "summary_of"]


def brief(
    run: Run,
    order: Sequence[NodeId],
    settings: RefineSettings,
    draw: Callable[[Sequence[Summary]], Plan | None] = lambda summaries: None,
) -> Briefing:
    """What the wave after the run's present one is told. `order` has the candidates
    (`agent.run.rollouts.Candidate.node`), best first; `draw` makes a plan of their summaries
    (`agent.solver.refine.plan`).

    Raises:
        agent.budget.BudgetSpent, agent.errors.RamifyError: as `draw`.
    """
    told = priors(run, order, settings.priors)
    plan = draw(told) if settings.plan and told else None
    return Briefing(run.round + 1, told, plan)


def priors(run: Run, order: Sequence[NodeId], most: int) -> tuple[Summary, ...]:
    """The summaries of the best rollouts, at most so many, each once; a candidate without one is passed over."""
    return tuple(_summaries(run, order))[:most]


def _summaries(run: Run, order: Sequence[NodeId]) -> Iterator[Summary]:
    rollouts = run.rollouts()
    for node in dict.fromkeys(order):
        leaves = [rollout.leaf for rollout in rollouts if rollout.best == node]
        found = [summary for leaf in leaves if (summary := summary_of(run, leaf))]
        yield from found[:1]


def summary_of(run: Run, leaf: NodeId) -> Summary | None:
    """Of a rollout: the one that was written last, and one by a model before the one that was read off the journal."""
    found = [summary for (of, _), summary in run.summaries.items() if of == leaf]
    return max(reversed(found), key=lambda summary: summary.author != "journal", default=None)
