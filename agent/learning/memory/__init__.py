"""Memory across issues: what verified runs teach the next one. Episodes, insights, reflections, experiences; skills.

Laws: only what was verified is remembered (`admission`); an issue is never shown a memory of itself (`issue`); all
of it is one file (`store`), read without a model or a network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from agent.learning.memory.admission import now, source_of
from agent.learning.memory.insights import Operation, applicable, learned, operated
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import Episode, Experience, Insight, Item, Kind, Source
from agent.learning.memory.lessons import lessons
from agent.learning.memory.remembering import episode, recollections
from agent.learning.memory.store import Store
from agent.models.conversing import Abstained
from agent.run.run import Run

__all__ = ["Found", "Memory"]

log = logging.getLogger(__name__)

_T = TypeVar("_T", bound=Item)

Learn = Callable[[list[Insight]], list[Insight]]
Distil = Callable[[Episode, Sequence[str], Sequence[Insight]], Sequence[Operation]]
"""What a repair with these lessons changes in these insights (`agent.learning.memory.distilling`)."""
SHOWN = 20
"""Insights that a model is shown to change, the likest ones."""
GENERAL = 0.0
"""The score of an insight that shares no word with a query: it may hold all the same."""


@dataclass(frozen=True, slots=True)
class Found:
    """An item, and how well it fits a query: at least 0, the more the better."""

    item: Item
    score: float


class Memory:
    """A memory file and what can be done with it. Thread-safe."""

    def __init__(self, path: Path, *, make: bool = True, at: Callable[[], datetime] = now) -> None:
        """As `agent.learning.memory.store.Store`; `at` says what time it is."""
        self.store = Store(path, make=make)
        self._at = at

    def add(self, run: Run, distil: Distil | None = None) -> list[Item]:
        """Remember a run, in the place of what was remembered of it before: the items that it is the source of. With
        `distil`, that says what the insights learn; without it, or where it has nothing to say that can be read, they
        learn the run's lessons.

        Raises:
            agent.learning.memory.admission.Unverified: nothing verified how it ended.
            agent.errors.MemoryUnusable: the file cannot be written.
            agent.errors.RamifyError: as `distil`.
        """
        source = source_of(run, self._at())
        items = recollections(run, source)
        taught = lessons(run, [each for each in items if isinstance(each, Experience)])
        learn: Learn = partial(learned, lessons=taught, source=source.id)
        if distil is not None:
            learn = self._distilled(distil, run, source, taught) or learn
        self.store.remember(source, items, learn)
        return self.store.items_of(source.id)

    def take_skills(self, sources: Sequence[Source], skills: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        """Take sentences in as insights, each with the ids of the runs behind it, which are of these `sources`."""
        at = self._at().isoformat(timespec="seconds")

        def learn(known: list[Insight]) -> list[Insight]:
            for text, runs in skills:
                for run in runs:
                    known = learned(known, [text], run)
            return known

        self.store.revise(learn, [replace(source, added=at) for source in sources])

    def search(self, text: str, kind: Kind, count: int, apart_from: Issue | None = None) -> list[Found]:
        """The items of a kind that share most with a text, best first; none that comes from the issue `apart_from`.
        Insights that share nothing with it come last, those of most runs first."""
        least = 1 if kind == "insight" else 2
        scores = self.store.corpus(kind, text).scores(least)
        items: Iterable[Item] = self._read(list(scores), count)
        if kind == "insight":
            every = self.store.items("insight")
            items = sorted(every, key=lambda each: (-scores.get(each.id, GENERAL), -len(each.sources), each.id))
        return [Found(item, scores.get(item.id, GENERAL)) for item in self._others(items, count, apart_from)]

    def met(self, clusters: Sequence[str], count: int, apart_from: Issue | None = None) -> list[Experience]:
        """The steps that made errors of these clusters go away, the largest gain first."""
        found = sorted(self.store.of_clusters(clusters), key=lambda each: (-each.score, each.id))
        return self._others(found, count, apart_from)

    def prune(self, *, older_than_days: float | None = None, runs: Sequence[str] = (), ids: Sequence[str] = ()) -> int:
        """Forget runs by age, by id or by directory, and single items; how many of both there were."""
        sources = self.store.sources().values()
        gone = {each.id for each in sources if {each.id, each.directory} & set(runs)}
        if older_than_days is not None:
            oldest = (self._at() - timedelta(days=older_than_days)).isoformat(timespec="seconds")
            gone |= {each.id for each in sources if each.added < oldest}
        return self.store.forget(sorted(gone)) + self.store.drop(ids)

    def _distilled(self, distil: Distil, run: Run, source: Source, taught: Sequence[str]) -> Learn | None:
        """What a model makes of the insights that fit a run; nobody waits for it with the file in hand, so of what it
        said only that counts whose insights are still there."""
        repair = episode(run, source)
        near = [each.item for each in self.search(repair.searched, "insight", SHOWN)]
        others = [each for each in near if isinstance(each, Insight) and set(each.sources) != {source.id}]
        try:
            said = distil(repair, taught, others)
        except Abstained as why:
            log.warning("%s: the insights learn its own lessons: %s", source.id, why)
            return None
        return lambda known: operated(known, applicable(said, known), source.id)

    def _read(self, names: Sequence[str], count: int) -> Iterator[Item]:
        """Items by name, read `count` at a time as they are asked for."""
        for at in range(0, len(names), max(count, 1)):
            yield from self.store.get(names[at : at + count])

    def _others(self, items: Iterable[_T], count: int, apart_from: Issue | None) -> list[_T]:
        """The first `count` of the items that do not come from the issue, alone or among others."""
        found, rest = list[_T](), iter(items)
        while len(found) < count and (some := list(islice(rest, count))):
            own = self._own({source for each in some for source in each.sources}, apart_from)
            found += [each for each in some if own.isdisjoint(each.sources)]
        return found[:count]

    def _own(self, sources: Iterable[str], issue: Issue | None) -> set[str]:
        """Those of the runs that were on the issue."""
        if issue is None:
            return set()
        return {each.id for each in self.store.named_sources(sources) if issue.same(each.issue)}
