"""TreeQuest in an environment of its own: it is what our searches are compared with, and no dependency of ours."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

from benchmarks.perf.repositories import cache

__all__ = ["VERSION", "interpreter"]

VERSION = "0.3.3"


def interpreter(folder: str = "") -> Path:
    """The Python of an environment that has TreeQuest, made where there is none: in `folder`, or in our cache.

    Raises:
        subprocess.CalledProcessError: pip failed.
    """
    place = Path(folder) if folder else cache() / f"treequest-{VERSION}"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    has_it = subprocess.run([python, "-c", "import treequest"], capture_output=True, check=False).returncode == 0
    if not has_it:
        subprocess.run([python, "-m", "pip", "install", "-q", f"treequest=={VERSION}"], check=True)
    return python
