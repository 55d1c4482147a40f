"""MutatePolicy: proposes edits without a model, the likeliest first.

The lines that the failing tests execute (spectrum-based fault localisation) are edited on their syntax tree by typed
templates. The n-th expansion of a node is the n-th candidate of its state: nothing is remembered between proposals
that could not be computed again, so a resumed search goes on where it stopped.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from agent.actions import Edit
from agent.actions.canonical import canonical
from agent.measure.probing.spectrum import Spectrum
from agent.policy import Position, Proposal
from agent.policy.mutate.candidates import candidates
from agent.policy.mutate.history import History, retrace
from agent.policy.mutate.later import later, single, unmended
from agent.policy.mutate.localise import Suspicion, crash_sites, ochiai, sharpened
from agent.policy.mutate.source import Source, Unsupported
from agent.policy.mutate.whole import edits

__all__ = ["MutatePolicy", "edits"]

KEPT_STATES = 8
"""Lists of candidates kept in memory; others are computed again."""
FILES = 12
"""Files that are edited, the most suspicious ones."""

_State = tuple[str, frozenset[str]]
"""A digest, and what earlier waves proposed there."""


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
    patch: Callable[[str], bytes] = lambda name: b""
    """The patch of a summary (`agent.run.rollouts.Summary.patch_blob`), by its name."""
    policy_id: str = field(default="mutate/1", init=False)
    _ranked: OrderedDict[tuple[str, frozenset[str]], _Ranked] = field(
        default_factory=OrderedDict, init=False, repr=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The next candidate of the position's state; the same for a position whatever the generator."""
        path = position.path
        if len(path) > 1 and path[-1].value <= path[-2].value:
            return Proposal(())
        return self._ranked_for(position)[position.index]

    def _ranked_for(self, position: Position) -> _Ranked:
        key = position.node.state_hash, position.earlier
        with self._lock:
            if key not in self._ranked:
                self._ranked[key] = _Ranked(_proposals(position, self.spectrum(), self.patch))
                while len(self._ranked) > KEPT_STATES:
                    self._ranked.popitem(last=False)
            self._ranked.move_to_end(key)
            return self._ranked[key]


def _proposals(position: Position, spectrum: Spectrum, patch: Callable[[str], bytes]) -> Iterator[Proposal]:
    """Nothing that was proposed here in an earlier wave."""
    made = _every_proposal(position, spectrum, patch)
    return (proposal for proposal in made if canonical(proposal.actions) not in position.earlier)


def _every_proposal(position: Position, spectrum: Spectrum, patch: Callable[[str], bytes]) -> Iterator[Proposal]:
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
    if position.briefing is None:
        return single(found, sources)
    return later(position, found, sources, patch)


def _suspicion(position: Position, spectrum: Spectrum) -> Suspicion:
    """Of the base state's lines: the failing tests are those to be mended (`unmended`). When none of them executed a
    line, because it failed before it ran, what was imported is suspected."""
    root = position.path[0].report
    failing = unmended(position)
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
