"""Prepares what is sent to the workers: Ramify's own code and the instances."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.batch.cluster.task import WorkerJob
from benchmarks.data.sources import open_source, parted
from benchmarks.data.sources.bundles import Bundles
from ramify.packages import PACKAGES

_SPECIAL = re.compile(r"[\\*?\[\]!# ]")
"""Characters with a special meaning in patterns of .gitignore."""
_PLACE = "set"
"""The folder that holds the instances on the workers. None of our packages may have this name or contain such a folder:
exclude patterns apply to the code as well, and a worker imports from the folder above this one."""


def pack(job: WorkerJob, out: Path, packed: Path) -> tuple[WorkerJob, dict[str, Any]]:
    """Return the job with the source as workers find it, and the runtime environment for Ray. `packed` is an empty
    folder; a link to the folder of the instances, or to a file that holds all of them, is put there, so that nothing
    beside that file is sent. The batch's folder is not sent.

    Raises:
        UsageError: the source cannot be opened.
    """
    code = [str(Path(str(importlib.import_module(name).__file__)).parent) for name in ("ramify", *PACKAGES)]
    excludes = ["**/__pycache__"]
    environment: dict[str, Any] = {"py_modules": code, "excludes": excludes}
    place, part = parted(job.source)
    path = Path(place).absolute()
    if not path.exists():
        return job, environment
    if path.is_file() and not isinstance(open_source(job.source, out), Bundles):
        target, inside = path, ""
    else:
        target, inside = (path.resolve(), "") if path.is_dir() else (path.parent.resolve(), f"/{path.name}")
        if out.resolve().is_relative_to(target):
            batch = f"/{_PLACE}/{target.name}/{out.resolve().relative_to(target)}"
            excludes.append(_SPECIAL.sub(r"\\\g<0>", batch))
    (packed / _PLACE).mkdir()
    (packed / _PLACE / target.name).symlink_to(target)
    source = f"{_PLACE}/{target.name}{inside}{f':{part}' if part else ''}"
    return replace(job, source=source), environment | {"working_dir": str(packed)}
