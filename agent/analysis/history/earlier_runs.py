"""Earlier runs: a search begins from the best state that earlier runs of its task reached; no model is asked again.

The recorded turns are carried out again, state by state, in the search's own sandbox, and every state is measured again
(TreeCUA, arXiv 2602.09662, replays the prefixes that its trajectories share from one memory). Where a state differs
from its record, the turns after it are left out: they were made for another state.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from agent.actions import Action
from agent.errors import PolicyError, RamifyError
from agent.policy import Position, Proposal
from agent.run.events import Noted, Started
from agent.run.paths import begun
from agent.run.run import Run
from agent.run.tree.choice import EXCHANGED, Choice, Reason
from agent.run.tree.node import ROOT, Node
from agent.run.tree.tree import Tree
from agent.task import load_task
from sandboxes import Provider

log = logging.getLogger(__name__)

BEGINS_FROM = "begins from"
"""The key of the root's note that says which run and which of its nodes was chosen; empty: none."""


@dataclass(eq=False)
class EarlierRuns:
    """Proposes the turns that led to the best state of the runs in a folder. It serves all workers of a run."""

    folder: Path
    replayed: Run | None = None
    """The run that is replayed, if any: it has the turns itself, so that no other run is read."""
    policy_id: str = "earlier/1"
    _choosing: threading.Lock = field(default_factory=threading.Lock)
    _tree: Tree | None = None
    _path: tuple[Node, ...] = ()
    """The recorded nodes from the child of the root to the chosen state."""
    _begun: set[str] = field(default_factory=set)
    """The hints of all choices of this session, and of those that an earlier one had in progress."""

    def sync(self, run: Run, provider: Provider) -> None:
        """Choose the state, once per run."""
        with self._choosing:
            if self._tree is None:
                self._path = tuple(self._chosen(run))
                self._begun |= {each.choice.hint for each in run.in_progress}
                self._tree = run.tree

    def next(self) -> Choice | None:
        """A choice to carry out the turns that led to the next state on the path; None if all states are there, one is
        in progress, or one differs from its record."""
        if (tree := self._tree) is None:
            return None
        at = tree.root
        for node in self._path:
            child = next((child for child in tree.children(at.id) if _turns(child) == _turns(node)), None)
            if child is None:
                hint = str(node.id)
                if hint in self._begun or not tree.expandable(at.id):
                    return None
                self._begun.add(hint)
                reason = Reason(at.id, {"score": self._path[-1].value})
                return Choice(at.id, kind=EXCHANGED, hint=hint, independent=True, reasons=(reason,))
            if child.state_hash != node.state_hash:
                return None
            at = child
        return None

    def propose(self, position: Position, rng: Random) -> Proposal:
        """The recorded turn.

        Raises:
            PolicyError: the run that recorded it is gone.
        """
        node = next((node for node in self._path if str(node.id) == position.hint), None)
        if node is None:
            raise PolicyError(f"no run in {self.folder} has the state {position.hint} any more")
        number = len(position.steps)
        label = node.label.partition(": ")[2] if node.by_model else node.label
        step, final = node.steps[number], number + 1 == len(node.steps)
        return Proposal(step.actions, step.message, prior=node.prior, label=label, final=final)

    def _chosen(self, run: Run) -> Iterator[Node]:
        if self.replayed is not None:
            yield from (node for node in self.replayed.tree if node.policy_id == self.policy_id)
            return
        note = run.note(ROOT, BEGINS_FROM)
        if note is None:
            note = self._best(run)
            run.record(Noted(ROOT, BEGINS_FROM, note))
        if note:
            try:
                with Run.read(self.folder / note["run"]) as earlier:
                    yield from earlier.tree.path(note["node"])[1:]
            except RamifyError as error:
                log.warning("%s begins from %s, which cannot be read: %s", run.journal.directory, note["run"], error)

    def _best(self, run: Run) -> dict[str, Any]:
        """The run and the node with the highest value among all runs that began like this one; the first of several."""
        found, value = dict[str, Any](), 0.0
        assert run.started is not None
        for directory in sorted(journal.parent for journal in self.folder.glob("*/journal.jsonl")):
            try:
                if directory.samefile(run.journal.directory) or not _alike(begun(directory), run.started):
                    continue
                with Run.read(directory) as earlier:
                    for node in filter(lambda node: _leads_on(earlier.tree, node), earlier.tree):
                        if node.value > value:
                            found, value = {"run": directory.name, "node": node.id}, node.value
            except RamifyError as error:
                log.info("%s is skipped: %s", directory, error)
        return found


def _alike(one: Started, other: Started) -> bool:
    """Whether two runs are on one issue, were given the same goal tests, and have the same base state."""
    first, second = load_task(one.task), load_task(other.task)
    same = first.statement == second.statement and first.goal_tests == second.goal_tests
    return same and one.base.digest == other.base.digest


def _leads_on(tree: Tree, node: Node) -> bool:
    """Whether a state is better than its base state, can be expanded, and can be reached by turns alone."""
    better = node.value > tree.root.value and not node.evaluation.tampered
    path = tree.path(node.id)[1:]
    return better and tree.expandable(node.id) and not node.line_end and all(above.steps for above in path)


def _turns(node: Node) -> list[tuple[tuple[Action, ...], str]]:
    return [(step.actions, step.message) for step in node.steps]
