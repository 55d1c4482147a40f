"""Decides which rows may be trained on. Other rows are skipped, and counted by the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

from agent.learning.export import Row
from agent.learning.export.changes import written
from agent.learning.export.counting import ANSWERED
from agent.learning.export.duplicates import Duplicates
from agent.learning.export.exclusions import Exclusions
from agent.learning.export.provenance import origin, task_key
from agent.learning.export.scrubbing import scrubbed
from agent.run.action_log import task_of
from agent.run.run import Run
from agent.run.tree.node import NodeId
from agent.solver.contrast import suspects
from agent.solver.warnings import manipulations

TAMPERED = "it comes from a rollout that tampers with the tests"
SUSPECTED = "a model that compared the answers judges that it only satisfies the tests"


@dataclass(slots=True)
class Hygiene:
    """The checks, in this order: the exporter's own skips, contamination, licence, tampering, emptiness, copies.
    Used for one export only, as it remembers the rows that passed."""

    exclusions: Exclusions = field(default_factory=Exclusions)
    licences: Collection[str] = ()
    """SPDX names or patterns (`BSD-*`) of allowed licences; empty: all are allowed."""
    duplicates: Duplicates = field(default_factory=Duplicates)
    scrubs: int = 0
    """The number of rows in which a secret or personal data was replaced."""

    def check(self, run: Run, rows: Iterator[Row]) -> Iterator[Row | str]:
        """Each row ready to be written, or the reason why it is skipped."""
        barred = self.exclusions.reason(run) or self._licence(run)
        for row in rows:
            yield row["skipped"] if "skipped" in row else barred or self._checked(run, row)

    def _licence(self, run: Run) -> str:
        name = origin(run)["license"]
        allowed = not self.licences or any(fnmatchcase(name, pattern) for pattern in self.licences)
        return "" if allowed else f"the licence {name} is not among those allowed"

    def _checked(self, run: Run, row: Row) -> Row | str:
        if not flagged(run).isdisjoint(row["provenance"]["nodes"]):
            return TAMPERED
        if not suspects(run).keys().isdisjoint(row["provenance"]["nodes"]):
            return SUSPECTED
        clean, changed = scrubbed(row)
        task = task_of(run)
        work = f"{task.statement}\n{written(run, row['provenance']['nodes'])}"
        reason = _emptiness(clean) or self.duplicates.reason(clean, work, task_key(task))
        self.scrubs += changed and not reason
        return reason or clean


@lru_cache(maxsize=1)
def flagged(run: Run) -> frozenset[NodeId]:
    """The nodes whose patch the guard refused, at measurement or verification, and all nodes below them."""
    nodes = set(manipulations(run))
    for node in run.tree:
        if node.parents and node.parents[0] in nodes:
            nodes.add(node.id)
    return frozenset(nodes)


def _emptiness(row: Row) -> str:
    """Why nothing can be learned from a row; empty if something can."""
    if "chosen" in row and row["chosen"] == row["rejected"]:
        return "chosen and rejected are the same"
    columns = [row[key] for key in ANSWERED if key in row]
    answers = [[message for message in column if message["role"] == "assistant"] for column in columns]
    if any(not any(m.get("content") or m.get("tool_calls") for m in messages) for messages in answers):
        return "an answer is empty"
    return ""
