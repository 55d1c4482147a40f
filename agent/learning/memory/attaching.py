"""Connects a run to the memory that its settings name: recall during the run, remembering at its end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from agent.budget import Budget
from agent.engine.components import Recall
from agent.engine.model_calls import ModelGateway
from agent.engine.recorder import Recorder
from agent.errors import MemoryUnusable
from agent.learning.memory import Memory
from agent.learning.memory.admission import Unverified
from agent.learning.memory.distilling import Distiller
from agent.learning.memory.recall import Lookup, Replayed
from agent.learning.memory.reflecting import Reflector
from agent.models import Ask, Model
from agent.run.run import Run
from agent.settings import MemorySettings, ModelSettings

log = logging.getLogger(__name__)


def recall(settings: MemorySettings, known: Run | None) -> Recall | None:
    """Return what recalls memories for policies; None if memory is off. In a replay of the run `known`, policies get
    the memories that were recalled in that run.

    Raises:
        MemoryUnusable: the file cannot be used.
    """
    if known is not None:
        return Replayed(known)
    memory = _memory(settings)
    return None if memory is None else Lookup(memory, settings.demos, settings.insights, settings.tokens)


def reflect(settings: MemorySettings, run: Run, model: Model, budget: Budget) -> None:
    """Have a model reflect on the surprises of a run that has ended, if there is a memory to keep the reflections
    in."""
    if settings.path is None or not (settings.enabled and settings.remember):
        return
    record = Recorder(run, budget)
    ask = partial(ModelGateway(record).at, purpose="reflection")
    Reflector(model, ask, record)(run)


def remember(settings: MemorySettings, run: Run, known: Run | None) -> None:
    """Remember a run that has ended, if its outcome was verified, it is not a replay of `known`, and the memory is not
    read-only. An unusable memory is only logged, so that the run's patch is not lost."""
    try:
        memory = _memory(settings) if known is None and settings.remember else None
        if memory is not None:
            memory.add(run)
    except Unverified as why:
        log.info("%s is not remembered: %s", run.journal.directory, why)
    except MemoryUnusable as error:
        log.error("%s is not remembered: %s", run.journal.directory, error)


@contextmanager
def distiller(name: str | None, settings: ModelSettings, ask: Ask) -> Iterator[Distiller | None]:
    """A distiller with the model of this name; None without a name.

    Raises:
        agent.errors.ConfigError: as `agent.models.registry.make`.
    """
    if name is None:
        yield None
        return
    from agent.models import registry

    model = registry.make(name, **settings.of_client())
    try:
        yield Distiller(model, ask)
    finally:
        model.close()


def _memory(settings: MemorySettings) -> Memory | None:
    return Memory(settings.path) if settings.path is not None and settings.enabled else None
