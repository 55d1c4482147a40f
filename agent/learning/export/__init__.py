"""Exports: runs as rows of training data. A format is one file here and one line in `agent.learning.export.registry`.

Laws: a row is a function of its run's journal, so that the same runs give the same bytes; two things besides are looked
at, a licence that the task does not name (guessed from the workspace as it is now) and the environment's secrets (taken
out); a prompt is the one that was really answered; a row says where it comes from (`agent.learning.export.provenance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from agent.run.run import Run

__all__ = ["Compares", "Exporter", "Row", "refused"]

Row = dict[str, Any]
"""What one line of a file holds, as JSON has it."""
Exporter = Callable[["Run"], Iterator[Row]]
"""The rows of a run, in the order of its nodes. Its own keywords are the options of its format."""


@runtime_checkable
class Compares(Protocol):
    """An exporter whose rows compare runs of a task: all runs are shown to it before the first row is made."""

    def look(self, run: Run) -> None:
        """Take in a run."""
        ...


def refused(reason: str) -> Row:
    """Stands for a row that was not made, for the count of such: it is not written."""
    return {"refused": reason}
