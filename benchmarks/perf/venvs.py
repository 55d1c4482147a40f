"""Virtual environments for the tools of others that ours is compared with, which are not dependencies of ours."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

from benchmarks.perf.repositories import cache

TREEQUEST = "treequest==0.3.3"
MINI_SWE_AGENT = "mini-swe-agent==2.4.6"


def interpreter(requirement: str, folder: str = "") -> Path:
    """The Python of an environment that has `requirement` (NAME==VERSION), in `folder` or in our cache. The environment
    is made if it is missing.

    Raises:
        subprocess.CalledProcessError: pip failed.
    """
    name, _, version = requirement.partition("==")
    place = Path(folder) if folder else cache() / f"{name}-{version}"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    program = f"from importlib.metadata import version; assert version({name!r}) == {version!r}"
    if subprocess.run([python, "-c", program], capture_output=True, check=False).returncode:
        subprocess.run([python, "-m", "pip", "install", "-q", requirement], check=True)
    return python
