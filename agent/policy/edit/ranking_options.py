"""Chooses the ranking that the settings of the policy `edit` ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.errors import ConfigError
from agent.models import Model
from agent.models.openai import OpenAIModel
from agent.models.scoring import ScoringModel
from agent.policy.edit.counts import Counts
from agent.policy.edit.ranking import ByCounts, ByModel, MutateOrder, Ranking, Together, Uniform


def ranking_of(options: Mapping[str, Any], models: Callable[[str], Model]) -> tuple[Ranking, dict[str, Any]]:
    """The ranking, and the remaining options. `by` names the rankings, joined by a plus; the default is `mutate`,
    together with a file of counts and a model if they are set.

    Raises:
        ConfigError: a ranking of that name does not exist, or an option that it needs is missing or invalid.
    """
    others = dict(options)
    counts, model = others.pop("counts", None), others.pop("model", None)
    default = [name for name, value in (("model", model), ("counts", counts)) if value]
    by = str(others.pop("by", "+".join([*default, "mutate"])))
    rankings = [_ranking(name, by, counts, model, models) for name in by.split("+")]
    return rankings[0] if len(rankings) == 1 else Together(tuple(rankings)), others


def _ranking(name: str, by: str, counts: Any, model: Any, models: Callable[[str], Model]) -> Ranking:
    match name:
        case "mutate":
            return MutateOrder()
        case "uniform":
            return Uniform()
        case "counts" if counts:
            return ByCounts(Counts.read(Path(str(counts))))
        case "model" if model:
            server = models(str(model))
            if not isinstance(server, OpenAIModel):
                raise ConfigError(f"policy.model={model}: give openai/NAME with model.base_url, such as a vLLM server")
            return ByModel(ScoringModel(server))
    raise ConfigError(
        f"policy.by={by}: give mutate, uniform, counts (with policy.counts=FILE), model (with policy.model=NAME), "
        "or several joined by a plus, as counts+mutate"
    )
