"""Salvage: the best patch so far is written to disk as soon as a session is cancelled.

Work in progress ends first, and a pipeline may kill the process before that. The patch of the best state is therefore
written at once, unverified.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from agent.engine.session import Session
from agent.files import write_atomically
from agent.solver.cancelling import on_cancel
from agent.solver.candidates import CandidatePool
from sandboxes import SandboxError

log = logging.getLogger(__name__)

SALVAGED = "salvaged.patch"
"""The file in a run's directory with the best patch of a cancelled session that has not ended."""


@contextmanager
def salvaging(session: Session, pool: CandidatePool) -> Iterator[None]:
    """Salvage if the session is cancelled during the block. The file is removed if the block ends with a result."""
    file = session.run.journal.directory / SALVAGED
    with on_cancel(session.cancel, partial(_salvage, pool, file)):
        yield
    file.unlink(missing_ok=True)


def _salvage(pool: CandidatePool, file: Path) -> None:
    """Write the best patch, if there is one. A failure is only logged."""
    try:
        if best := next(iter(pool.candidates()), None):
            write_atomically(file, pool.patch(best))
            log.warning("the best patch so far, not verified yet, is in %s", file)
    except (OSError, SandboxError) as error:
        log.warning("the best patch so far cannot be written before it is verified: %s", error)
