"""Exports runs as rows of training data. A format is one file here and one line in `agent.learning.export.registry`.

Invariants: a row depends only on its run's journal, so that the same runs give the same bytes, with two exceptions: a
licence that the task does not name is guessed from the workspace, and the environment's secrets are removed. A row's
prompt is the one that was actually answered. A row says where it comes from (`agent.learning.export.provenance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Protocol, runtime_checkable

from pydantic import Field

if TYPE_CHECKING:
    from agent.run.run import Run

__all__ = ["GOAL_UNKNOWN", "AtLeastOne", "Exporter", "NeedsAllRuns", "Row", "Share", "skipped"]

Row = dict[str, Any]
"""One line of a file, as a JSON object."""
Exporter = Callable[["Run"], Iterator[Row]]
"""Makes the rows of a run, in the order of its nodes. Its fields are the options of its format, of a type that
`agent.learning.export.registry.construct` checks."""
AtLeastOne = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


@runtime_checkable
class NeedsAllRuns(Protocol):
    """An exporter that compares the runs of a task: it sees all runs before it makes the first row."""

    @property
    def needs_all_runs(self) -> bool:
        """Whether its options ask for the comparison."""
        ...

    def collect(self, run: Run) -> None:
        """Add a run to the comparison."""
        ...


GOAL_UNKNOWN = "no test is known that has to pass, so that nothing says whether the task is solved"
"""Why a run has no rows whose text says whether the task is solved."""


def skipped(reason: str) -> Row:
    """A placeholder for a row that was not made. It is counted and not written."""
    return {"skipped": reason}
