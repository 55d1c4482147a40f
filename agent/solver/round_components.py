"""WaveParts: what a run in waves is made of, beside the parts of any search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.models import Ask, Model
from agent.run.ballots import Judge
from agent.settings import RefineSettings, Settings, TournamentSettings
from agent.solver.refine.plan import Planner
from agent.solver.summaries.by_model import ModelSummariser
from agent.solver.tournament.judges import judge_of

__all__ = ["WaveParts", "wave_parts"]


@dataclass(frozen=True, slots=True)
class WaveParts:
    """How many rollouts there are, and who sums them up, compares them and plans what is next."""

    rollouts: int = 1
    """To finish in each wave, at least 1."""
    rounds: int = 1
    """Waves, at most, at least 1."""
    single_edits: bool = False
    """The policy proposes single edits: a rollout is finished where it solves the task, and nowhere else."""
    tournament: TournamentSettings = field(default_factory=TournamentSettings)
    refine: RefineSettings = field(default_factory=RefineSettings)
    judge: Callable[[Ask], Judge] | None = None
    """Compares rollouts, asking its model in that way; None: rules alone do."""
    summariser: ModelSummariser | None = None
    """Puts rollouts into words; None: what is recorded is put into words without a model."""
    planner: Planner | None = None
    """Draws the plan of a wave; None: it has none."""


def wave_parts(settings: Settings, models: Callable[[str], Model]) -> WaveParts | None:
    """What the settings ask for; None: no waves, it is searched until something is solved.

    Raises:
        agent.errors.ConfigError: as `agent.solver.tournament.judges.judge_of`.
    """
    if not settings.in_waves:
        return None
    proposing, refine = settings.proposing, settings.refine
    planning = (refine.model or proposing) if refine.plan and refine.priors and settings.rounds > 1 else None
    return WaveParts(
        rollouts=settings.rollouts,
        rounds=settings.rounds,
        single_edits=settings.single_edits,
        tournament=settings.tournament,
        refine=refine,
        judge=judge_of(settings.tournament, proposing, models),
        summariser=ModelSummariser(models(proposing)) if proposing else None,
        planner=Planner(models(planning)) if planning else None,
    )
