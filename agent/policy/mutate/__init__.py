"""MutatePolicy: proposes edits without a model, the likeliest first.

Typed templates edit the syntax trees of the lines that the failing tests execute (spectrum-based fault localisation).
The n-th expansion of a node is the n-th candidate of its state. All memory between proposals can be computed again, so
a resumed search continues where it stopped.
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
from agent.policy.mutate.later_rounds import goals_to_fix, proposals_of, proposals_of_later_round
from agent.policy.mutate.localise import Suspicion, boosted, crash_sites, ochiai
from agent.policy.mutate.source import Source, Unsupported

KEPT_STATES = 8
"""How many states' candidates are kept in memory; others are computed again."""
FILES = 12
"""How many files are edited, the most suspicious ones."""

_State = tuple[str, frozenset[str]]
"""A state's digest, and what earlier rounds proposed there."""


class _LazyProposals:
    """The proposals for one state, generated on demand."""

    def __init__(self, proposals: Iterator[Proposal]) -> None:
        self._rest = proposals
        self._generated: list[Proposal] = []
        self._lock = threading.Lock()

    def __getitem__(self, index: int) -> Proposal:
        with self._lock:
            while len(self._generated) <= index:
                proposal = next(self._rest, None)
                if proposal is None:
                    return Proposal(())
                self._generated.append(proposal)
            return self._generated[index]


@dataclass
class MutatePolicy:
    """Proposes single edits of suspicious lines, then the same edit at several places, then pairs.

    At a child that is better than its parent it proposes second edits, which do not touch the bytes of the first; at
    other children, nothing.
    """

    spectrum: Callable[[], Spectrum]
    """Returns the spectrum of the base state; called for the first proposal."""
    patch: Callable[[str], bytes] = lambda name: b""
    """Returns the patch of a summary by its name (`agent.run.rollouts.Summary.patch_blob`)."""
    policy_id: str = field(default="mutate/1", init=False)
    _ranked: OrderedDict[_State, _LazyProposals] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The next candidate of the position's state; it does not depend on the generator."""
        path = position.path
        if len(path) > 1 and path[-1].value <= path[-2].value:
            return Proposal(())
        return self._ranked_for(position)[position.index]

    def _ranked_for(self, position: Position) -> _LazyProposals:
        key = position.node.state_hash, position.earlier
        with self._lock:
            if key not in self._ranked:
                self._ranked[key] = _LazyProposals(_proposals(position, self.spectrum(), self.patch))
                while len(self._ranked) > KEPT_STATES:
                    self._ranked.popitem(last=False)
            self._ranked.move_to_end(key)
            return self._ranked[key]


def _proposals(position: Position, spectrum: Spectrum, patch: Callable[[str], bytes]) -> Iterator[Proposal]:
    """The proposals for the position, without those that an earlier round made here."""
    proposals = _every_proposal(position, spectrum, patch)
    return (proposal for proposal in proposals if canonical(proposal.actions) not in position.earlier)


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
    ranked = candidates(list(sources.values()), present, position.task.statement, frozen)
    if position.briefing is None:
        return proposals_of(ranked, sources)
    return proposals_of_later_round(position, ranked, sources, patch)


def _suspicion(position: Position, spectrum: Spectrum) -> Suspicion:
    """The suspicion of the base state's lines, from the tests that remain to be fixed (`goals_to_fix`). If none of them
    executed a line, because they failed before they ran, the imported lines are suspected."""
    root = position.path[0].report
    failing = goals_to_fix(position)
    lines = {test: spectrum.lines_of(test) for test in spectrum.executed}
    suspicion = ochiai(lines, failing, set(root.passes))
    if not suspicion:
        suspicion = {path: dict.fromkeys(numbers, 1.0) for path, numbers in spectrum.imported.items() if numbers}
    messages = [text for test, text in root.messages.items() if test in failing]
    return boosted(suspicion, crash_sites(messages, lambda path: path in suspicion))


def _edits_of(position: Position, path: str) -> list[Edit]:
    actions = (action for node in position.path[1:] for action in node.actions)
    return [action for action in actions if isinstance(action, Edit) and action.path == path]


def _moved(lines: Mapping[int, float], history: History) -> dict[int, float]:
    return {history.line_of.get(line, line): value for line, value in lines.items()}
