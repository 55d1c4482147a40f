"""Factories: the search, policies, models, value and round components that the settings name, with their options."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agent.engine.components import RoundComponents
from agent.errors import ConfigError
from agent.evaluate.foresight import Foresight, SiblingRanking
from agent.evaluate.value import Value
from agent.evaluate.value.registry import VALUES
from agent.measure.scopes.scopes import state_s
from agent.models import Model
from agent.models.breakpoints import lifetime
from agent.models.halt import Halt
from agent.policy import Policy
from agent.recipes import named
from agent.run.run import Run
from agent.search import Search
from agent.search.registry import SEARCHES, SINGLE_EDITS
from agent.settings import MODEL_FREE_POLICIES, Choice, ModelSettings, Settings
from agent.solver.tournament.judges import judge_of

if TYPE_CHECKING:
    from agent.policy.mutate import MutatePolicy


_T = TypeVar("_T")


def require_needs(settings: Settings) -> None:
    """Check that the settings name everything that their recipe needs. Raises ConfigError otherwise."""
    needs = named(settings.recipe).needs if settings.recipe else ""
    if needs == "model" and settings.primary_model is None:
        remedy = "needs a model: name one with --model MODEL (setting: policy)"
    elif needs == "policies" and not settings.panel:
        remedy = "needs several policies on one tree: give --model more than once (setting: policy=[...])"
    elif needs == "memory" and settings.memory.path is None:
        remedy = "needs a memory: name a file with --memory FILE or -c memory.path=FILE"
    else:
        return
    raise ConfigError(f"the recipe `{settings.recipe}` {remedy}")


def search_of(settings: Settings) -> Search:
    """The search. Raises ConfigError for an unknown name or option."""
    name, options = settings.resolved_search.name, settings.resolved_search.options
    if name not in SEARCHES:
        raise ConfigError(f"unknown search {name!r}: one of {', '.join(SEARCHES)}")
    if name == "strategies" and settings.policy.name in MODEL_FREE_POLICIES:
        raise ConfigError(
            f"the search `strategies` asks its policy for strategies in words, and `{settings.policy.name}` has none: "
            "name a model with --model (setting: policy), or another search with --search (search.name)"
        )
    if settings.policy.name in MODEL_FREE_POLICIES:
        options = {**SINGLE_EDITS.get(name, {}), **options}
    return _construct(SEARCHES[name], options, f"search.{name}")


def policies_of(settings: Settings) -> tuple[Choice, ...]:
    """The policy and those of the panel. Raises ConfigError if one is named twice."""
    named = (settings.policy, *settings.panel)
    for choice in named:
        if sum(other.name == choice.name for other in named) > 1:
            raise ConfigError(f"policy {choice.name!r} is named twice; name each policy once")
    return named


def policy_of(choice: Choice, settings: ModelSettings, run: Run, models: Callable[[str], Model]) -> Policy:
    """A policy. Raises ConfigError for an unknown option, or a model that cannot be made."""
    if choice.name in POLICIES:
        return POLICIES[choice.name](choice.options, run, models)
    from agent.models.abilities import abilities
    from agent.policy.chat.conversation import capped
    from agent.policy.chat.policy import ChatPolicy

    known = abilities(choice.name, settings.base_url)
    detected = {
        "tool_calls": "text" if settings.tool_calls == "auto" and known.tools is False else settings.tool_calls,
        "context_tokens": capped(settings.context_tokens or known.context_tokens, settings.context_soft_cap),
    }
    return _construct(ChatPolicy, {**detected, **choice.options, "model": models(choice.name)}, "policy.chat")


def _mutate(options: Mapping[str, Any], run: Run, models: Callable[[str], Model]) -> MutatePolicy:
    from agent.measure.probing.spectrum import Spectrum
    from agent.policy.mutate import MutatePolicy

    facts = {"spectrum": lambda: Spectrum.from_json(run.note(0, "spectrum") or {}), "patch": run.journal.get_blob}
    return _construct(MutatePolicy, {**options, **facts}, "policy.mutate")


def _edit(options: Mapping[str, Any], run: Run, models: Callable[[str], Model]) -> Policy:
    from agent.policy.edit import EditPolicy
    from agent.policy.edit.ranking_options import ranking_of

    ranking, others = ranking_of(options, models)
    return _construct(EditPolicy, {**others, "mutate": _mutate({}, run, models), "ranking": ranking}, "policy.edit")


POLICIES: dict[str, Callable[[Mapping[str, Any], Run, Callable[[str], Model]], Policy]] = {
    "edit": _edit,
    "mutate": _mutate,
}
"""Makers of the policies that are not a chat model, by the names in `agent.settings.MODEL_FREE_POLICIES`."""


def model_of(
    settings: Settings,
    held: ExitStack,
    halt: Halt,
    make: Callable[..., Model] | None,
    run: Run | None,
    name: str,
    **client: Any,
) -> Model:
    """Make the model of a name. It is closed with `held` and learns how long the tests of the run take. `make` replaces
    `agent.models.registry.make`. `client`: keywords that differ from the settings."""
    from agent.models import registry

    cache_ttl = partial(_cache_ttl, settings, run)
    model = (make or registry.make)(name, halt=halt, cache_ttl=cache_ttl, **{**settings.model.of_client(), **client})
    held.callback(model.close)
    return model


def _cache_ttl(settings: Settings, run: Run | None) -> Literal["5m", "1h"]:
    """Return how long a provider should cache the beginning of a conversation: as set, else depending on how long the
    tests of a state take."""
    if settings.model.cache_ttl != "auto":
        return settings.model.cache_ttl
    measured = run is not None and len(run.tree)
    return lifetime(state_s(run.tree.root.report, settings.measure.timing) if run and measured else 0.0)


def value_of(settings: Settings, models: Callable[..., Model]) -> Value:
    """Return the value. If it needs a model, it uses the policy's unless its options name another; `base_url` is the
    address of that model if it differs from the policy's."""
    name, options = settings.value.name, dict(settings.value.options)
    if name not in VALUES:
        raise ConfigError(f"unknown value {name!r}: one of {', '.join(VALUES)}")
    if "model" not in [field.name for field in dataclasses.fields(VALUES[name])]:  # type: ignore[arg-type]  # all are dataclasses
        return _construct(VALUES[name], options, f"value.{name}")
    model, url = options.pop("model", settings.primary_model), options.pop("base_url", None)
    if model is None:
        raise ConfigError(
            f"value `{name}` needs a model, and no policy is one: set one with -c value.model=PROVIDER/NAME, or use "
            "--value tests (setting: value=tests)"
        )
    asked = models(str(model)) if url is None else models(str(model), base_url=str(url))
    return _construct(VALUES[name], {**options, "model": asked}, f"value.{name}")


def foresight_of(settings: Settings, models: Callable[[str], Model]) -> Foresight | SiblingRanking | None:
    """Return what scores states before they are measured, if the settings ask for it. Raises ConfigError if there is no
    model."""
    if settings.prior == "policy":
        return None
    if settings.primary_model is None:
        raise ConfigError(f"prior={settings.prior} needs a model: name one with --model MODEL (setting: policy)")
    return (Foresight if settings.prior == "model" else SiblingRanking)(models(settings.primary_model))


def round_components(settings: Settings, models: Callable[[str], Model]) -> RoundComponents | None:
    """The components of a run in rounds; None if the settings ask for no rounds, and one search runs until a state is
    solved.

    Raises:
        agent.errors.ConfigError: as `agent.solver.tournament.judges.judge_of`.
    """
    if not settings.in_rounds:
        return None
    primary_model, refine = settings.primary_model, settings.refine
    contrasting = (settings.tournament.model or primary_model) if settings.tournament.contrast else None
    planning = (refine.model or primary_model) if refine.plan and refine.priors and settings.rounds > 1 else None
    return RoundComponents(
        rollouts=settings.rollouts,
        rounds=settings.rounds,
        single_edits=settings.single_edits,
        tournament=settings.tournament,
        refine=refine,
        judge=judge_of(settings.tournament, primary_model, models),
        summariser=models(primary_model) if primary_model else None,
        contrast=models(contrasting) if contrasting else None,
        planner=models(planning) if planning else None,
    )


def _construct(kind: type[_T], options: Mapping[str, Any], where: str) -> _T:
    """Make an implementation, with the settings as its keywords."""
    assert dataclasses.is_dataclass(kind)
    keywords = [f.name for f in dataclasses.fields(kind) if f.init]
    section, _, name = where.partition(".")
    for key in options:
        if difflib.get_close_matches(key, ["name", *keywords], 1) == ["name"]:
            raise ConfigError(f"unknown setting `{section}.{key}`: did you mean `{section}.name`?")
        if key not in keywords:
            raise ConfigError(
                f"unknown setting `{section}.{key}`: `{name}` takes {', '.join(keywords) or 'no settings'}"
            )
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"`{where}`: {error}") from error
