"""Attempts: the searches of the parts, each a run of its own below the run's directory, and what they have used."""

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
from agent.run.tree.tree import NodeId
from agent.solver.delegation.plan import SubTask
from sandboxes import Provider, SandboxError

__all__ = [
    "MERGED",
    "Attempt",
    "Ledger",
    "attempt",
    "begun",
    "failures",
    "forget",
    "going",
    "merged",
    "unmerged",
]

log = logging.getLogger(__name__)

MERGED = "merge"
"""The kind of a node that a part was merged into; its `policy_id` names the part."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The search of a part from one integrated state."""

    part: SubTask
    base: NodeId
    """The node of the integrated state, in the run that delegates."""
    directory: Path


def merged(run: Run) -> list[str]:
    """The parts that are in the integrated state, in the order of merging."""
    return [node.policy_id for node in run.tree if node.kind == MERGED]


def failures(run: Run, part: str, base: NodeId | None = None) -> list[str]:
    """Why searches of a part came to nothing, from one node or from any."""
    bases = range(len(run.tree)) if base is None else (base,)
    return [
        each.reason
        for node in bases
        for each in run.tree.attempts(node)
        if each.child is None and each.policy_id == part
    ]


def going(run: Run) -> list[Path]:
    """The directories of searches that have begun and came to nothing yet, neither to a merge nor to a failure."""
    done = merged(run)
    return [
        path
        for path in _all(run)
        if path.parent.name not in done and not failures(run, path.parent.name, int(path.name))
    ]


def begun(run: Run, part: SubTask) -> list[NodeId]:
    """The nodes from which searches of a part are going on, oldest first."""
    return sorted(int(path.name) for path in going(run) if path.parent.name == part.id)


def unmerged(run: Run) -> list[str]:
    """The parts that were searched and are not merged, each with the last reason, for people."""
    names = dict.fromkeys(path.parent.name for path in _all(run))
    left = [name for name in names if name not in merged(run)]
    reasons = {name: [*failures(run, name), "its search has not come to an end"] for name in left}
    return [f"part {name} is not merged: {reasons[name][-2:][0]}" for name in left]


def _all(run: Run) -> list[Path]:
    return sorted(journal.parent for journal in (run.journal.directory / PARTS).glob("*/*/journal.jsonl"))


def attempt(directory: Path, part: SubTask, base: NodeId) -> Attempt:
    """The search of a part from a node."""
    return Attempt(part, base, directory / PARTS / part.id / str(base))


def forget(provider: Provider, directory: Path) -> None:
    """Give up the states of a search that has been concluded."""
    with Run.read(directory) as run:
        base = run.started.base if run.started else None
        states = {node.snapshot for node in run.tree if run.note(node.id, DISCARDED) is None} - {base}
    try:
        provider.discard(*states)
    except SandboxError as error:
        log.info("states that nobody needs stay for now: %s", error)


class Ledger:
    """Brings what the searches have used into the journal of the run that delegates, each bit once."""

    def __init__(self, run: Run, budget: Budget) -> None:
        self._run = run
        self._known: defaultdict[str, Usage] = defaultdict(Usage)
        for event in run.journal.events():
            if isinstance(event, Spent):
                self._known[event.what] += event.usage
        for directory in _all(run):
            used, nodes = self.enter(directory)
            budget.settle(used, nodes)

    def enter(self, directory: Path) -> tuple[Usage, int]:
        """What one has used since it was entered last, and how many nodes it has. Its own budget counted that already
        in this session."""
        with Run.read(directory) as search:
            total, nodes = search.usage, len(search.tree)
        what = str(directory.relative_to(self._run.journal.directory))
        used = total - self._known[what]
        if used != Usage():
            self._run.record(Spent(used, what))
            self._known[what] = total
        return used, nodes
