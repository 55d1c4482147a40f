"""Estimates what a batch may cost before it starts, and adds up what it has spent, for its limits."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.budget import Budget, Usage
from agent.build.composition import limits, unpriced
from agent.counting import counted
from agent.errors import RamifyError
from agent.models.prices import REMEDY
from agent.run.run import Run
from agent.settings import Settings
from benchmarks.batch.batch import Attempt, Batch
from benchmarks.batch.cluster.coordinator import UNFINISHED
from benchmarks.data.instances import Instance

log = logging.getLogger(__name__)

AFTER_THE_LIMIT = ", and after it the end of the step in progress and the verification of the patch"
"""The work of an instance that comes on top of its time limit, after which no new step starts."""


def spent_so_far(batch: Batch, instances: Iterable[Instance]) -> Usage:
    """What earlier sessions spent: on finished attempts, on the unfinished runs of `instances`, and on runs that were
    restarted."""
    spent = sum((attempt.usage for attempt in batch.attempts.values() if attempt.finished), Usage())
    for instance in batch.left(instances):
        if (batch.run_dir(instance) / "journal.jsonl").is_file():
            spent += _spent_by_run(batch.run_dir(instance))
    return sum(map(_spent_by_run, batch.out.glob(f"{UNFINISHED}/*/*")), spent)


def _spent_by_run(run_dir: Path) -> Usage:
    try:
        return Run.read(run_dir).usage
    except RamifyError as error:  # resuming the run fails with the same error
        log.warning("what %s has spent is not known: %s", run_dir, error)
        return Usage()


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of expense, such as tokens."""

    unit: str
    digits: int
    limit: float | None
    """The most that one instance may spend; None: no limit."""
    total: float | None
    """The most that the batch may spend; None: no limit."""
    spent: float
    """What the batch has spent so far."""
    samples: tuple[float, ...]
    """What each instance that has ended spent."""
    beyond: str = ""
    """What comes on top of the limit of an instance."""

    def phrases(self, count: int) -> Iterator[str]:
        """The forecast for `count` more instances."""
        if self.limit is not None:
            yield f"at most {self._number(count * self.limit)} ({count} x {self._number(self.limit)}){self.beyond}"
        elif self.total is None:
            yield "no limit"
        if self.total is not None:
            yield f"stops at {self._number(self.total)} in all, {self._number(self.spent)} spent so far"
        if self.samples:
            mean = sum(self.samples) / len(self.samples)
            ended = "the one that" if len(self.samples) == 1 else f"the {len(self.samples)} that"
            yield f"about {self._number(mean * count)} going by {ended} ended ({self._number(mean)} each)"

    def _number(self, amount: float) -> str:
        return f"{amount:,.{self.digits}f}"


def forecast(todo: Sequence[Instance], attempts: Iterable[Attempt], settings: Settings, total: Budget) -> list[str]:
    """What the remaining instances may cost, at worst and going by the instances that have ended: a line for each kind
    of expense."""
    ended = [attempt for attempt in attempts if attempt.finished]
    names = ", ".join(unpriced(settings))
    lines = [f"  dollars      the price of {names} is unknown: {REMEDY}"] if names else []
    for kind in _kinds(settings, limits(settings), total, ended):
        phrases = "; ".join(kind.phrases(len(todo)))
        lines.append(f"  {kind.unit:<13}{phrases}")
    return [f"estimate for {counted(len(todo), 'instance')}:", *lines] if todo else []


def _kinds(settings: Settings, limits: Mapping[str, Any], total: Budget, ended: Sequence[Attempt]) -> Iterator[_Kind]:
    """All kinds of expense; those of models only if the settings use one."""
    spent = total.spent
    if settings.value.name != "tests" or any(c.name != "mutate" for c in (settings.policy, *settings.panel)):
        yield from _of_models(limits, total, ended, unknown=bool(unpriced(settings)))
    measured = tuple(float(a.usage.measurements) for a in ended)
    yield _Kind("test runs", 0, limits["max_measurements"], total.max_measurements, spent.measurements, measured)
    seconds = tuple(float(a.facts["seconds"]) for a in ended if a.facts)
    yield _Kind("seconds", 0, limits["max_seconds"], total.max_seconds, total.elapsed_s, seconds, AFTER_THE_LIMIT)


def _of_models(limits: Mapping[str, Any], total: Budget, ended: Sequence[Attempt], *, unknown: bool) -> Iterator[_Kind]:
    spent = total.spent
    if not unknown:
        priced = tuple(a.usage.cost_usd for a in ended if not a.usage.unpriced_calls)
        yield _Kind("dollars", 2, limits["max_usd"], total.max_usd, spent.cost_usd, priced)
    tokens = tuple(float(a.usage.tokens) for a in ended)
    yield _Kind("tokens", 0, limits["max_tokens"], total.max_tokens, spent.tokens, tokens)
    calls = tuple(float(a.usage.model_calls) for a in ended)
    yield _Kind("model calls", 0, limits["max_calls"], total.max_calls, spent.model_calls, calls)
