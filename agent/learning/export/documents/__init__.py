"""Documents: a run as one file in the format of another program, its winning path first.

As in rows, secrets are removed, and the same run gives the same bytes. Unlike rows, documents are for viewing, so
failed runs have them too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.errors import UsageError
from agent.files import write_atomically
from agent.learning.export.documents.atif import Atif
from agent.learning.export.documents.traj import Traj
from agent.learning.export.registry import Format, construct
from agent.learning.export.scrubbing import clean
from agent.run.run import Run

__all__ = ["DOCUMENTS", "Document", "Kind", "export"]

Document = dict[str, Any]
"""The contents of a file, as a JSON object."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A format of documents."""

    format: Format
    file: str
    """The file's name; `{name}` stands for that of the run."""


DOCUMENTS = {
    "traj": Kind(
        Format(Traj, "the winning path as mini-swe-agent's NAME.traj.json (mini-extra inspector)"), "{name}.traj.json"
    ),
    "atif": Kind(Format(Atif, "ATIF-v1.7: the winning path, and other rollouts below it (harbor)"), "trajectory.json"),
}


def export(runs: Sequence[Path], form: str, options: Mapping[str, str], out: Path | None) -> list[Path]:
    """Write a file for each run, in a folder of its name below `out` or in the run's own folder; returns the files. A
    run without turns has none.

    Raises:
        UsageError: an option is unknown, or two runs have the same name.
        agent.errors.JournalError: a run cannot be read.
    """
    kind, written = DOCUMENTS[form], dict[Path, None]()
    make: Callable[[Run], Document | None] = construct(kind.format, form, options)
    for path in (run.absolute() for run in runs):  # `.` has no name
        target = (out / path.name if out else path) / kind.file.format(name=path.name)
        if target in written:
            raise UsageError(f"two runs are called {path.name}: give each batch an --out of its own")
        with Run.read(path) as run:
            document = make(run) if len(run.tree) else None
        if document is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, json.dumps(clean(document), indent=1).encode() + b"\n")
            written[target] = None
    return list(written)
