"""Documents: a run as one file in the format of another program, its winning path first.

As in rows, secrets are removed, and the same run gives the same bytes. Unlike rows, documents are for viewing, so
failed runs have them too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.errors import UsageError
from agent.files import write_atomically
from agent.learning.export.documents.atif import Atif
from agent.learning.export.documents.traj import Traj
from agent.learning.export.registry import Format, construct
from agent.learning.export.scrubbing import clean
from agent.run.run import Run

__all__ = ["DOCUMENTS", "export"]

DOCUMENTS = {
    "traj": Format(Traj, "the winning path as mini-swe-agent's NAME.traj.json (mini-extra inspector)"),
    "atif": Format(Atif, "ATIF-v1.7: the winning path, and other rollouts below it (harbor)"),
}


def export(runs: Sequence[Path], form: str, options: Mapping[str, str], out: Path | None) -> list[Path]:
    """Write a file for each run, in a folder of its name below `out` or in the run's own folder; returns the files. A
    run without turns has none.

    Raises:
        UsageError: an option is unknown, or two runs have the same name.
        agent.errors.JournalError: a run cannot be read.
    """
    make: Traj | Atif = construct(DOCUMENTS[form], form, options)
    written = list[Path]()
    for path in (run.absolute() for run in runs):  # `.` has no name
        target = (out / path.name if out else path) / make.file.format(name=path.name)
        if target in written:
            raise UsageError(f"two runs are called {path.name}: give each batch an --out of its own")
        with Run.read(path) as run:
            document = make(run) if len(run.tree) else None
        if document is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, json.dumps(clean(document), indent=1).encode() + b"\n")
            written.append(target)
    return written
