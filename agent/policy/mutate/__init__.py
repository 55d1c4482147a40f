"""MutatePolicy: proposes edits without a model, the likeliest first.

The lines that the failing tests execute (spectrum-based fault localisation) are edited on their syntax tree by typed
templates. The n-th expansion of a node is the n-th candidate of its state: nothing is remembered between proposals
that could not be computed again, so a resumed search goes on where it stopped.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from agent.actions import Edit
from agent.measure.spectrum import Spectrum
from agent.policy import Position, Proposal
from agent.policy.mutate.candidates import Candidate, candidates, distinct
from agent.policy.mutate.history import History, retrace
from agent.policy.mutate.localise import Suspicion, crash_sites, ochiai, sharpened
from agent.policy.mutate.source import Change, Source, Unsupported

__all__ = ["MutatePolicy", "edits"]

KEPT_STATES = 8
"""Lists of candidates kept in memory; others are computed again."""
FILES = 12
"""Files that are edited, the most suspicious ones."""


class _Ranked:
    """The proposals for one state, made as far as they were asked for."""

    def __init__(self, proposals: Iterator[Proposal]) -> None:
        self._rest = proposals
        self._made: list[Proposal] = []
        self._lock = threading.Lock()

    def __getitem__(self, index: int) -> Proposal:
        with self._lock:
            while len(self._made) <= index:
                proposal = next(self._rest, None)
                if proposal is None:
                    return Proposal(())
                self._made.append(proposal)
            return self._made[index]


@dataclass
class MutatePolicy:
    """Single edits of suspicious lines, then the same edit at several places, then pairs.

    At a child that is better than its parent it proposes second edits, which leave the bytes of the first alone; at one
    that is not, nothing.
    """

    spectrum: Callable[[], Spectrum]
    """The spectrum of the base state; called when the first proposal is wanted."""
    policy_id: str = field(default="mutate/1", init=False)
    _ranked: OrderedDict[str, _Ranked] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The next candidate of the position's state; the same for a position whatever the generator."""
        path = position.path
        if len(path) > 1 and path[-1].value <= path[-2].value:
            return Proposal(())
        return self._ranked_for(position)[position.index]

    def _ranked_for(self, position: Position) -> _Ranked:
        key = position.node.state_hash
        with self._lock:
            if key not in self._ranked:
                self._ranked[key] = _Ranked(_proposals(position, self.spectrum()))
                while len(self._ranked) > KEPT_STATES:
                    self._ranked.popitem(last=False)
            self._ranked.move_to_end(key)
            return self._ranked[key]


def _proposals(position: Position, spectrum: Spectrum) -> Iterator[Proposal]:
    suspicion = _suspicion(position, spectrum)
    sources: dict[str, Source] = {}
    histories: dict[str, History] = {}
    for path in sorted(suspicion, key=lambda p: (-max(suspicion[p].values()), p))[:FILES]:
        try:
            data = position.box.read(path)
            sources[path] = Source(path, data)
        except (OSError, Unsupported):
            continue
        histories[path] = retrace(data, _edits_of(position, path))
    present = {path: _moved(suspicion[path], histories[path]) for path in sources}
    frozen = {path: history.written for path, history in histories.items()}
    found = candidates(list(sources.values()), present, position.task.statement, frozen)
    return _as_proposals(found, sources)


def _as_proposals(found: Sequence[Candidate], sources: Mapping[str, Source]) -> Iterator[Proposal]:
    top = found[0].score if found else 1.0
    for candidate, _ in distinct(found, sources):
        yield Proposal(
            actions=edits(sources[candidate.path], candidate.changes),
            prior=max(1e-6, min(1.0, candidate.score / top)),
            label=f"mutate: {candidate.label}",
        )


def _suspicion(position: Position, spectrum: Spectrum) -> Suspicion:
    """Of the base state's lines: the failing tests are the goal tests (all failing ones when none is named) that
    still fail at the node. When none of them executed a line, because it failed before it ran, what was imported is
    suspected."""
    root, node = position.path[0].report, position.node.report
    goals = position.task.goal_tests or root.failures
    failing = {test for test in goals if not node.passed(test)} or set(goals)
    lines = {
        test: [(path, line) for path, numbers in executed.items() for line in numbers]
        for test, executed in spectrum.executed.items()
    }
    suspicion = ochiai(lines, failing, set(root.passes))
    if not suspicion:
        suspicion = {path: dict.fromkeys(numbers, 1.0) for path, numbers in spectrum.imported.items() if numbers}
    messages = [text for test, text in root.messages.items() if test in failing]
    return sharpened(suspicion, crash_sites(messages, lambda path: path in suspicion))


def _edits_of(position: Position, path: str) -> list[Edit]:
    steps = (step for node in position.path[1:] for step in node.steps)
    return [action for step in steps for action in step.actions if isinstance(action, Edit) and action.path == path]


def _moved(lines: Mapping[int, float], history: History) -> dict[int, float]:
    return {history.line_of.get(line, line): value for line, value in lines.items()}


def edits(source: Source, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """The changes as edits of whole lines, the last one first, so that every line number holds when it is used."""
    found: list[Edit] = []
    for first, last, group in reversed(_regions(source, changes)):
        start, end = source.line_span(first, last)
        old = source.data[start:end]
        new = old
        for change in sorted(group, key=lambda c: (c.start, c.end), reverse=True):
            new = new[: change.start - start] + change.text.encode() + new[change.end - start :]
        found.append(Edit(source.path, old.decode(), new.decode(), first))
    return tuple(found)


def _regions(source: Source, changes: Sequence[Change]) -> list[tuple[int, int, list[Change]]]:
    """The changes by the lines that they touch, overlapping or touching ranges of lines joined."""
    regions: list[tuple[int, int, list[Change]]] = []
    for change in sorted(changes, key=lambda c: (c.start, c.end)):
        last_byte = max(change.start, change.end - 1)
        first = source.line(min(change.start, max(0, len(source.data) - 1)))
        last = source.line(min(last_byte, max(0, len(source.data) - 1)))
        if regions and first <= regions[-1][1] + 1:
            regions[-1] = (regions[-1][0], max(last, regions[-1][1]), [*regions[-1][2], change])
        else:
            regions.append((first, last, [change]))
    return regions
