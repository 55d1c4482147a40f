"""The composition root: the only file that knows every implementation by name."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent import solver
from agent.budget import Budget, Purse
from agent.config import restore
from agent.delegation.attempts import going
from agent.delegation.coordinating import Delegation
from agent.delegation.working import Workers
from agent.discarding import forget_unrecorded
from agent.errors import ConfigError, UsageError
from agent.events import Event
from agent.flights import Formations
from agent.growth import Begin
from agent.memory import attaching
from agent.models import Model
from agent.models.halt import Halt
from agent.models.prices import UNPRICED_LIMITS, listed
from agent.parts import Parts
from agent.places import STORE
from agent.policy import Policy
from agent.providers import make_provider
from agent.run import Run
from agent.search import Search
from agent.search.registry import SEARCHES, SINGLE_EDITS
from agent.settings import WORDLESS, Choice, ModelSettings, Settings
from agent.solver import Result
from agent.task import Task, load_task
from agent.value import Value
from agent.value.registry import VALUES
from agent.wave_parts import wave_parts
from sandboxes import Provider

if TYPE_CHECKING:
    from agent.policy.mutate import MutatePolicy

__all__ = ["check", "limits", "make_parts", "resume", "start", "unpriced"]

_T = TypeVar("_T")


def check(settings: Settings) -> None:
    """Make what needs no run and give it back, so that a fault of the settings is told before there is a run.

    Raises:
        agent.errors.MemoryUnusable: the file of the memory is none.
        agent.errors.ConfigError: an unknown search, model or value, a missing key.
    """
    attaching.recall(settings.memory, None)
    with ExitStack() as held:
        models = partial(_model, settings, held, Halt(), None)
        _search(settings)
        for choice in _policies(settings):
            if choice.name not in WORDLESS:
                models(choice.name)
        _value(settings, models)
        wave_parts(settings, models)


def start(
    task: Task,
    settings: Settings,
    directory: Path,
    *,
    cancel: threading.Event | None = None,
    on_event: Callable[[Event], None] | None = None,
    parent: Purse | None = None,
    make: Callable[..., Model] | None = None,
    known: Run | None = None,
    order: Formations = (),
) -> Result:
    """Solve a task in a run directory; a directory that holds this run already is gone on with. What it spends is
    spent of `parent` as well, the budget of several runs together. `make` makes the models in place of
    `agent.models.registry.make`; `known` is as for `agent.solver.solve`, `order` as for `agent.engine.Grower`.

    Raises:
        agent.errors.RamifyError, sandboxes.SandboxError: what each of the parts raises (see `agent.solver.solve`).
    """
    with Run.open(directory) as run:
        return _solve(task, settings, run, cancel, on_event, parent, make, known, order)


def resume(
    directory: Path,
    *,
    budget: Mapping[str, Any] | None = None,
    cancel: threading.Event | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Result:
    """Go on with a run exactly as it was begun, but for the limits that `budget` gives anew.

    Raises:
        agent.errors.UsageError: the directory holds no run.
        agent.errors.RamifyError, sandboxes.SandboxError: as `start`.
    """
    if not (directory / "journal.jsonl").is_file():
        raise UsageError(f"{directory} is not a run: it has no journal.jsonl; give the directory that solve printed")
    with Run.open(directory) as run:
        if run.started is None:
            raise UsageError(f"{directory}: the run ended before its base state was made; start it again with solve")
        settings = restore(run.started.settings)
        if budget:
            limits = settings.budget.model_copy(update=dict(budget))
            settings = settings.model_copy(update={"budget": limits})
        return _solve(load_task(run.started.task), settings, run, cancel, on_event)


def _solve(
    task: Task,
    settings: Settings,
    run: Run,
    cancel: threading.Event | None,
    on_event: Callable[[Event], None] | None,
    parent: Purse | None = None,
    make: Callable[..., Model] | None = None,
    known: Run | None = None,
    order: Formations = (),
) -> Result:
    cancel = cancel or threading.Event()
    with ExitStack() as held:
        whole = settings.model_copy(update={"rollouts": 1, "rounds": 1}) if settings.delegate else settings
        recall = attaching.recall(settings.memory, known)
        parts = dataclasses.replace(make_parts(whole, run, held, cancel, parent, make), recall=recall)
        if run.started is not None and not run.over:
            searches = [held.enter_context(Run.read(path)) for path in going(run)]
            forget_unrecorded(parts.provider, run.started.base, run, *searches)
        search: Begin = partial(solver.search, order=order)
        begin = _delegation(settings, parts, held, cancel, on_event, make) if settings.delegate else search
        dumped = settings.model_dump(mode="json")
        result = solver.solve(
            task, parts, run, settings=dumped, cancel=cancel, on_event=on_event, known=known, begin=begin
        )
        attaching.remember(settings.memory, run, known)
        return result


def _delegation(
    settings: Settings,
    parts: Parts,
    held: ExitStack,
    cancel: threading.Event,
    on_event: Callable[[Event], None] | None,
    make: Callable[..., Model] | None,
) -> Begin:
    """Parts are searched in the sandboxes and with the budget of the whole; the first policy that is a model divides
    the issue."""
    planner = _model(settings, held, parts.halt, make, settings.proposing) if settings.proposing else None

    def search(settings: Settings, run: Run, held: ExitStack) -> Parts:
        made = make_parts(settings, run, held, cancel, parts.budget, make, parts.provider)
        return dataclasses.replace(made, recall=parts.recall)

    return partial(Delegation, Workers(settings, search, cancel, on_event or (lambda event: None)), planner)


def make_parts(
    settings: Settings,
    run: Run,
    held: ExitStack,
    cancel: threading.Event,
    parent: Purse | None = None,
    make: Callable[..., Model] | None = None,
    provider: Provider | None = None,
) -> Parts:
    """Everything a search needs, made of the settings; closing `held` gives it back, but for a `provider` that is
    given. Nobody waits for a model once `cancel` is set.

    Raises:
        ConfigError: an unknown name or option, a missing key.
        sandboxes.SandboxUnavailable: this machine has no such sandbox.
    """
    budget = Budget(**limits(settings), parent=parent)
    halt = Halt(cancel, lambda: budget.left_s)
    models = partial(_model, settings, held, halt, make)
    policy, *others = (_policy(choice, settings.model, run, models) for choice in _policies(settings))
    search = _search(settings)
    if provider is None:
        provider = make_provider(settings, run.journal.directory / STORE)
        held.callback(provider.close)
    return Parts(
        provider=provider,
        policy=policy,
        search=search,
        value=_value(settings, models),
        budget=budget,
        halt=halt,
        baseline_runs=settings.measure.baseline_runs,
        workers=settings.workers,
        seed=settings.seed,
        others=tuple(others),
        gate=settings.gate,
        allowed=settings.sandbox.allow,
        localise=any(choice.name in WORDLESS for choice in _policies(settings)),
        waves=wave_parts(settings, models),
    )


def limits(settings: Settings) -> dict[str, Any]:
    """The budget's. Where a limit of dollars cannot hold, as a price is unknown, calls and tokens are limited too."""
    wanted = settings.budget.model_dump()
    unlimited = wanted["max_usd"] is not None and wanted["max_calls"] is None and wanted["max_tokens"] is None
    return wanted | UNPRICED_LIMITS if unlimited and unpriced(settings) else wanted


def unpriced(settings: Settings) -> bool:
    """Whether the price of a model that is asked is unknown."""
    asked = {choice.name for choice in _policies(settings) if choice.name not in WORDLESS}
    asked |= {str(choice.options["model"]) for choice in _policies(settings) if "model" in choice.options}
    asked |= {str(settings.value.options["model"])} if "model" in settings.value.options else set()
    asked |= {name for name in (settings.tournament.model, settings.refine.model) if name}
    return settings.model.price is None and not all(listed(name, settings.model.base_url) for name in asked)


def _search(settings: Settings) -> Search:
    name, options = settings.searching.name, settings.searching.options
    if name not in SEARCHES:
        raise ConfigError(f"unknown search {name!r}: one of {', '.join(SEARCHES)}")
    if name == "strategies" and settings.policy.name in WORDLESS:
        raise ConfigError(
            f"the search `strategies` asks its policy for strategies in words, and `{settings.policy.name}` has none: "
            "name a model with --policy, or another search with --search"
        )
    if settings.policy.name in WORDLESS:
        options = {**SINGLE_EDITS.get(name, {}), **options}
    return _construct(SEARCHES[name], options, f"search.{name}")


def _policies(settings: Settings) -> tuple[Choice, ...]:
    """All that propose, each once."""
    named = (settings.policy, *settings.panel)
    for choice in named:
        if sum(other.name == choice.name for other in named) > 1:
            raise ConfigError(f"the policy {choice.name!r} is named twice; it would only compete with itself")
    return named


def _policy(choice: Choice, spoken_to: ModelSettings, run: Run, models: Callable[[str], Model]) -> Policy:
    if choice.name == "mutate":
        return _mutate(choice.options, run)
    if choice.name == "edit":
        return _edit(choice.options, run, models)
    from agent.models.abilities import abilities
    from agent.policy.chat import ChatPolicy

    known = abilities(choice.name, spoken_to.base_url)
    given = {
        "tool_calls": "text" if spoken_to.tool_calls == "auto" and known.tools is False else spoken_to.tool_calls,
        "context_tokens": spoken_to.context_tokens or known.context_tokens,
    }
    return _construct(ChatPolicy, {**given, **choice.options, "model": models(choice.name)}, "policy.chat")


def _mutate(options: Mapping[str, Any], run: Run) -> MutatePolicy:
    from agent.measure.spectrum import Spectrum
    from agent.policy.mutate import MutatePolicy

    known = {
        "spectrum": lambda: Spectrum.from_json(run.note(0, "spectrum") or {}),
        "patch": run.journal.get_blob,
    }
    return _construct(MutatePolicy, {**options, **known}, "policy.mutate")


def _edit(options: Mapping[str, Any], run: Run, models: Callable[[str], Model]) -> Policy:
    from agent.policy.edit import EditPolicy
    from agent.policy.edit.choosing import chosen

    ranking, others = chosen(options, models)
    return _construct(EditPolicy, {**others, "mutate": _mutate({}, run), "ranking": ranking}, "policy.edit")


def _model(settings: Settings, held: ExitStack, halt: Halt, make: Callable[..., Model] | None, name: str) -> Model:
    from agent.models import registry

    model = (make or registry.make)(
        name, halt=halt, **settings.model.model_dump(exclude={"tool_calls", "context_tokens"})
    )
    held.callback(model.close)
    return model


def _value(settings: Settings, models: Callable[[str], Model]) -> Value:
    """What states are worth; a model that is asked for it is the policy's unless another is named."""
    name, options = settings.value.name, dict(settings.value.options)
    if name not in VALUES:
        raise ConfigError(f"unknown value {name!r}: one of {', '.join(VALUES)}")
    if name == "tests":
        return _construct(VALUES[name], options, "value.tests")
    wanted = options.pop("model", settings.proposing)
    if wanted is None:
        raise ConfigError(
            f"the value `{name}` asks a model, and the policy `mutate` is none: name one with "
            "-c value.model=PROVIDER/NAME, or take --value tests"
        )
    return _construct(VALUES[name], {**options, "model": models(str(wanted))}, f"value.{name}")


def _construct(kind: type[_T], options: Mapping[str, Any], where: str) -> _T:
    """An implementation from its keywords, which are its settings."""
    assert dataclasses.is_dataclass(kind)
    known = [f.name for f in dataclasses.fields(kind) if f.init]
    for key in options:
        if key not in known:
            raise ConfigError(f"unknown setting `{where}.{key}`: one of {', '.join(known) or 'none'}")
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"`{where}`: {error}") from error
