"""A search in a process of its own, which kills itself at a given event, for the tests of what is lost then.

python -m tests.attacks.searching REPO RUN '{"workers": 2, "dies_at": 9}'
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from agent.actions import Edit
from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.policy import Position, Proposal
from agent.run.events import Event
from agent.run.run import Run
from agent.search.best_first import BestFirst
from agent.solver.solve import solve
from sandboxes.namespace.provider import namespace_provider
from tests.policies import Scripted
from tests.projects import BUG, FIX, task

EDITS, MORE = 5, 1


@dataclass(frozen=True)
class Plan:
    """How the search goes."""

    workers: int = 2
    nodes: int | None = None
    fix: int | None = None
    """The index of the only right edit of the base state; None: there is none."""
    dies_at: int | None = None
    """The process kills itself when it has recorded so many events."""
    waits: int | None = None
    """The edit of the base state that is in flight until the process ends."""
    kills: int | None = None
    """The edit of the base state that kills the process."""


def die() -> None:
    """Kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def proposing(plan: Plan) -> Scripted:
    """The n-th child of the base state replaces the bug by a text of its own; so do a few children of each of those."""

    def propose(position: Position) -> Proposal:
        depth, index = len(position.path) - 1, position.index
        if depth > 1 or index >= (EDITS, MORE)[depth]:
            return Proposal(())
        if depth == 0 and index == plan.waits:
            threading.Event().wait()
        if depth == 0 and index == plan.kills:
            die()
        if depth == 0:
            new = FIX if index == plan.fix else text(index)
            return Proposal((Edit("means.py", BUG, new),), label=f"edit {index}")
        above = int(position.node.label.split()[-1])
        new = text(100 * (above + 1) + index)
        return Proposal((Edit("means.py", text(above), new),), label=f"edit {above} {index}")

    return Scripted(propose)


def text(number: int) -> str:
    """A line in place of the bug that repairs nothing, another one for each number."""
    return BUG.replace("< 0", f"< -{number + 1}")


def search(repo: Path, directory: Path, plan: Plan) -> str:
    """Begin the run or go on with it; its status."""
    recorded = 0

    def heard(event: Event) -> None:
        nonlocal recorded
        recorded += 1
        if recorded == plan.dies_at:
            die()

    with Run.open(directory) as run, namespace_provider(directory / "store") as provider:
        budget = Budget(max_nodes=plan.nodes)
        own = {"baseline_runs": 1, "workers": plan.workers, "lines": None}
        parts = Components(provider, proposing(plan), BestFirst(), PassingTests(), budget, **own)
        return solve(task(repo), parts, run, on_event=heard).status


if __name__ == "__main__":
    sys.stdout.write(search(Path(sys.argv[1]), Path(sys.argv[2]), Plan(**json.loads(sys.argv[3]))))
