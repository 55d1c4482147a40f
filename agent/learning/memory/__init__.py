"""Memory across issues: episodes, insights, reflections, experiences and skills from verified runs, for later ones.

Invariants: only verified outcomes are remembered (`admission`); an issue is never shown a memory of itself (`issue`);
the whole memory is one file (`store`), read without a model or a network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from agent.learning.memory.admission import now, source_of
from agent.learning.memory.insights import Operation, applicable, learned, operated
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import Episode, Experience, Insight, Item, Kind, Source
from agent.learning.memory.learning import lessons
from agent.learning.memory.remembering import Contrast, contrasts, episode, recollections
from agent.learning.memory.store import Store
from agent.models.answers import Abstained
from agent.run.run import Run

__all__ = ["Found", "Memory"]

log = logging.getLogger(__name__)

_T = TypeVar("_T", bound=Item)

Learn = Callable[[list[Insight]], list[Insight]]
Distil = Callable[[Episode, Sequence[str], Sequence[Insight], Sequence[Contrast]], Sequence[Operation]]
"""The changes that a repair with these lessons and contrasts makes to these insights
(`agent.learning.memory.distilling`)."""
SHOWN = 20
"""How many insights a model is shown for revision, the most similar ones."""
GENERAL = 0.0
"""The score of an insight that shares no word with a query: it may still apply."""


@dataclass(frozen=True, slots=True)
class Found:
    """An item with its score for a query: at least 0, higher is better."""

    item: Item
    score: float


class Memory:
    """A memory file: add runs, search, prune. Thread-safe."""

    def __init__(self, path: Path, *, make: bool = True) -> None:
        """As `agent.learning.memory.store.Store`."""
        self.store = Store(path, make=make)

    def add(self, run: Run, distil: Distil | None = None) -> list[Item]:
        """Remember a run, replacing what was remembered of it before, and return the items that come from it. `distil`
        decides how the insights change; without it, or when its answer cannot be read, the run's lessons are added.

        Raises:
            agent.learning.memory.admission.Unverified: the run's outcome was not verified.
            agent.errors.MemoryUnusable: the file cannot be written.
            agent.errors.RamifyError: as `distil`.
        """
        source = source_of(run, now())
        items = recollections(run, source)
        sentences = lessons(run, [item for item in items if isinstance(item, Experience)])
        learn: Learn = partial(learned, lessons=sentences, source=source.id)
        if distil is not None:
            learn = self._distilled(distil, run, source, sentences) or learn
        self.store.remember(source, items, learn)
        return self.store.items_of(source.id)

    def take_skills(self, sources: Sequence[Source], skills: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        """Add skills as insights. Each is a sentence with the ids of the runs behind it, all of them in `sources`."""
        at = now().isoformat(timespec="seconds")

        def learn(insights: list[Insight]) -> list[Insight]:
            for text, runs in skills:
                for run in runs:
                    insights = learned(insights, [text], run)
            return insights

        self.store.revise(learn, [replace(source, added=at) for source in sources])

    def search(self, text: str, kind: Kind, count: int, apart_from: Issue | None = None) -> list[Found]:
        """The items of a kind that match a text best, best first, without those from the issue `apart_from`. Insights
        that share no word with it come last, those with most runs first."""
        least = 1 if kind == "insight" else 2
        scores = self.store.corpus(kind, text).scores(least)
        items: Iterable[Item] = self._read(list(scores), count)
        if kind == "insight":
            insights = self.store.items("insight")
            items = sorted(insights, key=lambda item: (-scores.get(item.id, GENERAL), -len(item.sources), item.id))
        return [Found(item, scores.get(item.id, GENERAL)) for item in self._others(items, count, apart_from)]

    def met(self, clusters: Sequence[str], count: int, apart_from: Issue | None = None) -> list[Experience]:
        """The steps that fixed errors of these clusters, the largest gain first, without the issue `apart_from`."""
        steps = sorted(self.store.of_clusters(clusters), key=lambda step: (-step.score, step.id))
        return self._others(steps, count, apart_from)

    def prune(self, *, older_than_days: float | None = None, runs: Sequence[str] = (), ids: Sequence[str] = ()) -> int:
        """Forget runs by age, id or directory, and single items by id; returns how many of both were removed."""
        sources = self.store.sources().values()
        pruned = {source.id for source in sources if {source.id, source.directory} & set(runs)}
        if older_than_days is not None:
            oldest = (now() - timedelta(days=older_than_days)).isoformat(timespec="seconds")
            pruned |= {source.id for source in sources if source.added < oldest}
        return self.store.forget(sorted(pruned)) + self.store.drop(ids)

    def _distilled(self, distil: Distil, run: Run, source: Source, sentences: Sequence[str]) -> Learn | None:
        """The changes a model makes to the insights that fit a run. The file is not locked while the model answers, so
        only operations whose insights still exist are applied."""
        repair = episode(run, source)
        near = [match.item for match in self.search(repair.searched, "insight", SHOWN)]
        others = [item for item in near if isinstance(item, Insight) and set(item.sources) != {source.id}]
        try:
            operations = distil(repair, sentences, others, contrasts(run))
        except Abstained as why:
            log.warning("%s: the model's answer cannot be used; adding the run's own lessons: %s", source.id, why)
            return None
        return lambda insights: operated(insights, applicable(operations, insights), source.id)

    def _read(self, names: Sequence[str], count: int) -> Iterator[Item]:
        """Items by name, read lazily in batches of `count`."""
        for at in range(0, len(names), max(count, 1)):
            yield from self.store.get(names[at : at + count])

    def _others(self, items: Iterable[_T], count: int, apart_from: Issue | None) -> list[_T]:
        """The first `count` items that have no run on the issue among their sources."""
        others, rest = list[_T](), iter(items)
        while len(others) < count and (batch := list(islice(rest, count))):
            own = self._own({source for item in batch for source in item.sources}, apart_from)
            others += [item for item in batch if own.isdisjoint(item.sources)]
        return others[:count]

    def _own(self, sources: Iterable[str], issue: Issue | None) -> set[str]:
        """The ids of the runs that were on the issue."""
        if issue is None:
            return set()
        return {source.id for source in self.store.named_sources(sources) if issue.same(source.issue)}
