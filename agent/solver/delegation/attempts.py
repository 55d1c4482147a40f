"""Attempts: the searches for parts, each a run of its own below the run's directory, and their usage."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from agent.budget import Budget, Usage
from agent.run.events import Spent
from agent.run.eviction import DISCARDED
from agent.run.paths import PARTS
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.solver.delegation.plan import SubTask
from sandboxes import Provider, SandboxError

log = logging.getLogger(__name__)

MERGED = "merge"
"""The kind of a node into which a part was merged; its `policy_id` names the part."""


@dataclass(frozen=True, slots=True)
class PartAttempt:
    """The search of a part from one integrated state."""

    part: SubTask
    base: NodeId
    """The node of the integrated state, in the delegating run."""
    directory: Path


def merged(run: Run) -> list[str]:
    """The ids of the parts in the integrated state, in the order of merging."""
    return [node.policy_id for node in run.tree if node.kind == MERGED]


def failures(run: Run, part: str, base: NodeId | None = None) -> list[str]:
    """Return why searches for a part failed, from one node or from any."""
    bases = range(len(run.tree)) if base is None else (base,)
    return [
        expansion.reason
        for node in bases
        for expansion in run.tree.attempts(node)
        if expansion.child is None and expansion.policy_id == part
    ]


def unfinished_searches(run: Run) -> list[Path]:
    """Return the directories of searches that have started but ended neither in a merge nor in a failure."""
    done = merged(run)
    return [
        path
        for path in _search_directories(run)
        if path.parent.name not in done and not failures(run, path.parent.name, int(path.name))
    ]


def next_attempt(run: Run, part: SubTask, tip: NodeId) -> PartAttempt:
    """Return the latest unfinished search for a part, else a new one from the node `tip`."""
    bases = (int(path.name) for path in unfinished_searches(run) if path.parent.name == part.id)
    base = max(bases, default=tip)
    return PartAttempt(part, base, run.journal.directory / PARTS / part.id / str(base))


def unmerged(run: Run) -> list[str]:
    """Return a sentence for people about each part that was searched but not merged, with the last reason."""
    done = merged(run)
    left = [name for name in dict.fromkeys(path.parent.name for path in _search_directories(run)) if name not in done]
    reasons = {name: (failures(run, name) or ["its search has not ended"])[-1] for name in left}
    return [f"part {name} is not merged: {reason}" for name, reason in reasons.items()]


def _search_directories(run: Run) -> list[Path]:
    return sorted(journal.parent for journal in (run.journal.directory / PARTS).glob("*/*/journal.jsonl"))


def discard_states(provider: Provider, directory: Path) -> None:
    """Discard the states of a finished search."""
    with Run.read(directory) as run:
        base = run.started.base if run.started else None
        states = {node.snapshot for node in run.tree if run.note(node.id, DISCARDED) is None} - {base}
    try:
        provider.discard(*states)
    except SandboxError as error:
        log.info("states that are no longer needed are kept for now: %s", error)


class Ledger:
    """Records the usage of the searches in the journal of the delegating run, each amount once."""

    def __init__(self, run: Run, budget: Budget) -> None:
        self._run = run
        self._known: defaultdict[str, Usage] = defaultdict(Usage)
        for event in run.journal.events():
            if isinstance(event, Spent):
                self._known[event.what] += event.usage
        for directory in _search_directories(run):
            used, nodes = self.enter(directory)
            budget.charge(used, nodes)

    def enter(self, directory: Path) -> tuple[Usage, int]:
        """Record the usage of a search since it was last recorded. Returns that usage and the number of the search's
        nodes. In this session, the search's own budget has counted both already."""
        with Run.read(directory) as search:
            total, nodes = search.usage, len(search.tree)
        what = str(directory.relative_to(self._run.journal.directory))
        used = total - self._known[what]
        if used != Usage():
            self._run.record(Spent(used, what))
            self._known[what] = total
        return used, nodes
