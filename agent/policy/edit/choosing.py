"""Choosing: the ranking that the settings of the policy `edit` ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.errors import ConfigError
from agent.models import Model
from agent.models.openai import OpenAIModel
from agent.models.scoring import ScoringModel
from agent.policy.edit.counts import Counts
from agent.policy.edit.ranking import ByCounts, ByModel, Likeliest, Ranking, Together, Uniform

__all__ = ["chosen"]


def chosen(options: Mapping[str, Any], models: Callable[[str], Model]) -> tuple[Ranking, dict[str, Any]]:
    """The ranking, and the options that say nothing of it. `by` says who ranks, several joined by a plus; without it
    `mutate` does, together with a file of counts and a model where they are named.

    Raises:
        ConfigError: nobody ranks by that name, or what it needs is not named or no such thing.
    """
    others = dict(options)
    counts, model = others.pop("counts", None), others.pop("model", None)
    named = [name for name, given in (("model", model), ("counts", counts)) if given]
    by = str(others.pop("by", "+".join([*named, "mutate"])))
    rankings = [_ranking(name, by, counts, model, models) for name in by.split("+")]
    return rankings[0] if len(rankings) == 1 else Together(tuple(rankings)), others


def _ranking(name: str, by: str, counts: Any, model: Any, models: Callable[[str], Model]) -> Ranking:
    match name:
        case "mutate":
            return Likeliest()
        case "uniform":
            return Uniform()
        case "counts" if counts:
            return ByCounts(Counts.read(Path(str(counts))))
        case "model" if model:
            return ByModel(_scoring(str(model), models))
    raise ConfigError(
        f"policy.by={by}: one of mutate, uniform, counts (with policy.counts=FILE), model (with policy.model=NAME), "
        "or several joined by a plus, as counts+mutate"
    )


def _scoring(name: str, models: Callable[[str], Model]) -> ScoringModel:
    server = models(name)
    if not isinstance(server, OpenAIModel):
        raise ConfigError(f"policy.model={name}: give openai/NAME with model.base_url, as of a server of vLLM's")
    return ScoringModel(server)
