"""Makes the components of a search from its settings, and starts or resumes a run with them."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from agent.analysis.history.earlier_runs import EarlierRuns
from agent.analysis.history.exchanging import GitExchange
from agent.budget import Budget, ParentBudget
from agent.build.factories import (
    foresight_of,
    model_of,
    policies_of,
    policy_of,
    require_needs,
    round_components,
    search_of,
    value_of,
)
from agent.build.same_run import forget_refused, require_same, with_commit
from agent.build.sandboxes import make_provider
from agent.config import restore
from agent.engine.components import Components, Exchange
from agent.engine.engine import Engine
from agent.errors import ConfigError, UsageError
from agent.learning.memory import attaching
from agent.models import Model
from agent.models.halt import Halt
from agent.models.prices import UNPRICED_LIMITS, listed
from agent.prompts import SHIPPED, Prompts, using
from agent.run.events import Event
from agent.run.eviction import forget_unrecorded
from agent.run.paths import STORE, begun, store_of
from agent.run.run import Run
from agent.run.schedule import Schedule
from agent.settings import MODEL_FREE_POLICIES, Settings
from agent.solver.delegation.attempts import unfinished_searches
from agent.solver.delegation.coordinating import Delegation
from agent.solver.delegation.part_search import PartSearcher
from agent.solver.outcome import never_begun
from agent.solver.result import Result
from agent.solver.searcher import MakeSearcher
from agent.solver.solve import solve
from agent.task import Task, as_begun, load_task
from sandboxes import Provider, PullLeft
from sandboxes.docker.pulls import until


def check(settings: Settings) -> None:
    """Make the components that need no run and discard them, so that a mistake in the settings is reported before there
    is a run.

    Raises:
        agent.errors.MemoryUnusable: the memory file is not a memory.
        agent.errors.ConfigError: an unknown search, model or value, a missing key, or as `require_prices`.
    """
    require_needs(settings)
    _exchange_of(settings, None)
    attaching.recall(settings.memory, None)
    with ExitStack() as held:
        models = partial(model_of, settings, held, Halt(), None, None)
        search_of(settings)
        for choice in policies_of(settings):
            if choice.name not in MODEL_FREE_POLICIES:
                if near := get_close_matches(choice.name, MODEL_FREE_POLICIES, n=1, cutoff=0.7):
                    raise ConfigError(f"unknown policy {choice.name!r}: did you mean {near[0]}?")
                models(choice.name)
        value_of(settings, models)
        foresight_of(settings, models)
        round_components(settings, models)
    require_prices(settings)


def start(
    task: Task,
    settings: Settings,
    directory: Path,
    *,
    cancel: threading.Event | None = None,
    on_event: Callable[[Event], None] | None = None,
    parent: ParentBudget | None = None,
    make: Callable[..., Model] | None = None,
    prior_run: Run | None = None,
    schedule: Schedule = (),
    unfinished: bool = False,
) -> Result:
    """Solve a task in a run directory; if the directory already holds a run of it, that run is continued. Instructions
    in the settings replace the task's. `parent`: the common budget of several runs, from which the run also spends.
    `make` replaces `agent.models.registry.make`; `prior_run` is as for `agent.solver.solve.solve`, `schedule` as for
    `agent.engine.engine.Engine`; `unfinished` is as for both.

    Raises:
        agent.errors.UsageError: the directory holds a run of another task, or with other settings.
        agent.errors.ConfigError: as `require_prices`.
        agent.errors.RamifyError, sandboxes.SandboxError: as `agent.solver.solve.solve`.
    """
    require_needs(settings)
    cancel = cancel or threading.Event()
    if settings.instructions is not None:
        task = dataclasses.replace(task, instructions=settings.instructions.text)
    task = dataclasses.replace(task, goal_failing=task.goal_failing or (settings.single_edits and not task.goal_tests))
    task = with_commit(task)
    custom = settings.prompts
    prompts = SHIPPED if custom is None else Prompts(custom.texts, custom.path)
    forget_refused(directory, task, settings)
    with Run.open(directory) as run:
        if run.started is not None and run.started.task:
            require_same(run.started, task, settings, directory)
            task = as_begun(task, load_task(run.started.task))
        elif make is None:
            require_prices(settings)
        with ExitStack() as held, until(cancel), using(prompts), suppress(PullLeft):
            search_settings = (
                settings.model_copy(update={"rollouts": 1, "rounds": 1}) if settings.delegate else settings
            )
            recall = attaching.recall(settings.memory, prior_run)
            made = make_parts(search_settings, run, held, cancel, parent, make, prior_run=prior_run)
            parts = dataclasses.replace(made, recall=recall)
            if run.started is not None and (unfinished or not run.finished):
                searches = [held.enter_context(Run.read(path)) for path in unfinished_searches(run)]
                forget_unrecorded(parts.provider, run.started.base, run, *searches)
            engine: MakeSearcher = partial(Engine, schedule=schedule, unfinished=unfinished)
            begin = _delegation(settings, parts, held, cancel, on_event, make) if settings.delegate else engine
            dumped, was_finished = settings.model_dump(mode="json"), run.finished and not unfinished
            result = solve(
                task,
                parts,
                run,
                settings=dumped,
                cancel=cancel,
                on_event=on_event,
                prior_run=prior_run,
                begin=begin,
                unfinished=unfinished,
            )
            name = settings.primary_model
            if settings.memory.reflect and name and prior_run is None and not was_finished:
                attaching.reflect(
                    settings.memory, run, model_of(settings, held, parts.halt, make, run, name), parts.budget
                )
            attaching.remember(settings.memory, run, prior_run)
            return dataclasses.replace(result, usage=run.usage)
        return never_begun(directory)


def resume(
    directory: Path,
    *,
    budget: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    cancel: threading.Event | None = None,
    on_event: Callable[[Event], None] | None = None,
    unfinished: bool = False,
) -> Result:
    """Resume a run with the settings it started with, except for the limits in `budget` and, if it is given, the
    `base_url` of its models. With `unfinished`, first finish the rollouts that were still open when enough had
    finished, even if the run is over.

    Raises:
        agent.errors.UsageError: the directory holds no run, one whose states were removed, or one that leaves no
            rollouts unfinished.
        agent.errors.ConfigError: as `require_prices`.
        agent.errors.RamifyError, sandboxes.SandboxError: as `start`.
    """
    started = begun(directory)
    changes: dict[str, object] = {f"budget.{name}": limit for name, limit in (budget or {}).items()}
    settings = restore(started.settings, flags=changes | ({"model.base_url": base_url} if base_url else {}))
    if budget and "max_usd" in budget:
        require_prices(settings)
    if unfinished and (settings.single_edits or settings.delegate):
        kind = "divides the issue into parts" if settings.delegate else "makes single edits"
        raise UsageError(f"{directory} {kind}, and leaves no rollouts unfinished: leave out --unfinished")
    if not (store_of(directory).is_dir() or _is_finished(directory)):
        raise UsageError(
            f"{directory} cannot be resumed: its states were removed, as `ramify clean --states` does; start a new run "
            "with `ramify fix` or `ramify solve`"
        )
    task = load_task(started.task)
    return start(task, settings, directory, cancel=cancel, on_event=on_event, unfinished=unfinished)


def _is_finished(directory: Path) -> bool:
    with Run.read(directory) as run:
        return run.finished


def _delegation(
    settings: Settings,
    parts: Components,
    held: ExitStack,
    cancel: threading.Event,
    on_event: Callable[[Event], None] | None,
    make: Callable[..., Model] | None,
) -> MakeSearcher:
    """Return a delegation whose parts share the sandbox and the budget of the whole. The first policy that is a model
    divides the issue."""
    name = settings.primary_model
    planner = model_of(settings, held, parts.halt, make, None, name) if name else None

    def search(settings: Settings, run: Run, held: ExitStack) -> Components:
        components = make_parts(settings, run, held, cancel, parts.budget, make, parts.provider)
        return dataclasses.replace(components, recall=parts.recall)

    return partial(Delegation, PartSearcher(settings, search, cancel, on_event or (lambda event: None)), planner)


def make_parts(
    settings: Settings,
    run: Run,
    held: ExitStack,
    cancel: threading.Event,
    parent: ParentBudget | None = None,
    make: Callable[..., Model] | None = None,
    provider: Provider | None = None,
    prior_run: Run | None = None,
) -> Components:
    """Make the components of a search from the settings. Closing `held` closes them, except for a `provider` that is
    passed in. Nothing waits for a model once `cancel` is set. `prior_run`: as for `start`.

    Raises:
        ConfigError: an unknown name or option, a missing key.
        sandboxes.SandboxUnavailable: this machine has no such sandbox.
    """
    budget = Budget(**limits(settings), parent=parent)
    halt = Halt(cancel, lambda: budget.left_s)
    models = partial(model_of, settings, held, halt, make, run)
    policy, *others = (policy_of(choice, settings.model, run, models) for choice in policies_of(settings))
    search = search_of(settings)
    if provider is None:
        provider = make_provider(settings, run.journal.directory / STORE)
        held.callback(provider.close)
    return Components(
        provider=provider,
        policy=policy,
        search=search,
        value=value_of(settings, models),
        budget=budget,
        halt=halt,
        baseline_runs=settings.measure.baseline_runs,
        timing=settings.measure.timing,
        workers=settings.workers,
        seed=settings.seed,
        others=tuple(others),
        exchange=_exchange_of(settings, prior_run),
        gate=settings.gate,
        track=settings.track,
        allowed=settings.sandbox.allow,
        localise=any(choice.name in MODEL_FREE_POLICIES for choice in policies_of(settings)),
        lines=settings.lines,
        extra_lines=settings.extra_lines,
        patience=settings.patience,
        foresight=foresight_of(settings, models),
        rounds=round_components(settings, models),
    )


def _exchange_of(settings: Settings, prior_run: Run | None) -> Exchange | None:
    """Return the source of states of other runs, if there is one. `prior_run`: as for `start`.

    Raises:
        ConfigError: two settings name a source.
    """
    if settings.exchange and settings.begin_from:
        raise ConfigError("`exchange` and `begin_from` both bring in states of other runs: leave one out")
    if settings.begin_from:
        return EarlierRuns(settings.begin_from, prior_run)
    return GitExchange(settings.exchange) if settings.exchange else None


def require_prices(settings: Settings, total_usd: float | None = None) -> None:
    """Refuse a dollar limit that cannot be kept, whether the user set it in the settings or for a whole batch.

    Raises:
        ConfigError: the price of a model is unknown.
    """
    given = settings.budget.max_usd if "max_usd" in settings.budget.model_fields_set else None
    limits = (
        ("--max-usd", given, "--max-tokens N, --max-seconds N or -c budget.max_calls=N"),
        ("--total-usd", total_usd, "--total-tokens N, --total-seconds N or --total-calls N"),
    )
    for option, limit, others in limits:
        if limit is not None and (names := unpriced(settings)):
            raise ConfigError(
                f"{option} {limit:g} cannot be kept: the price of {', '.join(names)} is unknown; give it with "
                "--model-price IN,OUT[,CACHED] (model.price in the settings), in dollars per million tokens, or limit "
                f"something else instead: {others}"
            )


def limits(settings: Settings) -> dict[str, Any]:
    """Return the limits of the budget. If the default dollar limit cannot be kept because a price is unknown, calls and
    tokens are limited as well."""
    limits = settings.budget.model_dump()
    only_usd = limits["max_usd"] is not None and limits["max_calls"] is None and limits["max_tokens"] is None
    return limits | UNPRICED_LIMITS if only_usd and unpriced(settings) else limits


def unpriced(settings: Settings) -> list[str]:
    """Return the models that may be asked and whose price is unknown."""
    if settings.model.price is not None:
        return []
    policies = policies_of(settings)
    models = {choice.name for choice in policies if choice.name not in MODEL_FREE_POLICIES}
    models |= {str(choice.options["model"]) for choice in (*policies, settings.value) if "model" in choice.options}
    models |= {name for name in (settings.tournament.model, settings.refine.model) if name}
    return sorted(name for name in models if not listed(name, settings.model.base_url))
