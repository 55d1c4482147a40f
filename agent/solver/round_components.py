"""The components of a run in rounds, made of its settings."""

from __future__ import annotations

from collections.abc import Callable

from agent.engine.components import RoundComponents
from agent.models import Model
from agent.settings import Settings
from agent.solver.refine.plan import Planner
from agent.solver.summaries.by_model import ModelSummariser
from agent.solver.tournament.judges import judge_of

__all__ = ["round_components"]


def round_components(settings: Settings, models: Callable[[str], Model]) -> RoundComponents | None:
    """The components of a run in rounds; None if the settings ask for no rounds, and one search runs until a state is
    solved.

    Raises:
        agent.errors.ConfigError: as `agent.solver.tournament.judges.judge_of`.
    """
    if not settings.in_waves:
        return None
    primary_model, refine = settings.primary_model, settings.refine
    planning = (refine.model or primary_model) if refine.plan and refine.priors and settings.rounds > 1 else None
    return RoundComponents(
        rollouts=settings.rollouts,
        rounds=settings.rounds,
        single_edits=settings.single_edits,
        tournament=settings.tournament,
        refine=refine,
        judge=judge_of(settings.tournament, primary_model, models),
        summariser=ModelSummariser(models(primary_model)) if primary_model else None,
        planner=Planner(models(planning)) if planning else None,
    )
