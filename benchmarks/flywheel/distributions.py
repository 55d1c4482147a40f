"""Real repositories in which to make bugs, from the source distributions of projects.

    python -m benchmarks.flywheel.distributions DIR

Each becomes a git repository in which its own tests run without set-up: the package is beside the tests, tests that
need more than pytest are left out (or their requirements are put beside them), and the project's configuration does not
apply.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.errors import UsageError
from benchmarks.data import clones
from benchmarks.data.unpacking import unpack
from benchmarks.flywheel.sharing import ended

NEEDED = "tests/needed"
"""The folder for packages that the tests need. No bugs are made below `tests`."""
CONFIGURATION = f"[pytest]\npythonpath = . {NEEDED}\npython_files = test*.py\n"
"""The configuration of pytest. It takes precedence over that in other files, which requires plug-ins."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A release of a project."""

    version: str
    without: Sequence[str] = ()
    """Paths of tests that are left out."""
    needs: Sequence[str] = ()
    """Packages that the tests need; their own requirements are not installed."""


KNOWN: Mapping[str, Distribution] = {
    "boltons": Distribution("26.2.0"),
    "cachetools": Distribution("8.0.1"),
    "funcy": Distribution("2.1", needs=["whatever==0.7"]),
    "humanize": Distribution("4.17.0", without=[f"tests/test_{name}.py" for name in ("benchmarks", "i18n", "time")]),
    "inflection": Distribution("0.5.1"),
    "parse": Distribution("1.22.4"),
    "schema": Distribution("0.7.8"),
    "toolz": Distribution("1.2.0", without=["toolz/tests/test_package.py"]),
    "voluptuous": Distribution("0.16.0"),
}
HELD_OUT = ("cachetools", "funcy", "schema")
"""The projects that nothing is learned from in the figures of the README."""


def main(folder: str) -> int:
    """Make the missing repositories, and print the options for the figures."""
    target = Path(folder)
    for name, known in KNOWN.items():
        if not (target / name).exists():
            with TemporaryDirectory() as place:
                laid_out(_fetched(name, known, Path(place)), known, target / name)
    flags = [f"--repository {target / name}" for name in KNOWN] + [f"--hold-out {name}" for name in HELD_OUT]
    sys.stdout.write(" ".join(flags) + "\n")
    return 0


def laid_out(archive: Path, known: Distribution, folder: Path) -> None:
    """Turn a source distribution into the git repository `folder`.

    Raises:
        UsageError: the archive is unsafe, a test to leave out does not exist, or a required package cannot be
        installed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as place:
        unpack(archive, Path(place))
        [root] = Path(place).iterdir()
        for entry in (root / "src").glob("*"):
            entry.rename(root / entry.name)
        for path in known.without:
            if not (root / path).exists():
                raise UsageError(f"{archive.name} has no {path}, which is to be left out")
            (root / path).unlink()
        if known.needs:
            _pip("install", "--no-deps", "--target", str(root / NEEDED), *known.needs)
        (root / "pytest.ini").write_text(CONFIGURATION, encoding="utf-8")
        clones.create(root)
        shutil.move(root, folder)


def _fetched(name: str, known: Distribution, place: Path) -> Path:
    _pip("download", "--no-deps", "--no-binary", name, "--dest", str(place), f"{name}=={known.version}")
    [archive] = place.glob("*.tar.gz")
    return archive


def _pip(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], capture_output=True)
    if done.returncode:
        raise UsageError(f"pip {' '.join(arguments)} failed: {done.stderr.decode(errors='replace').strip()[-500:]}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give the folder for the repositories: python -m benchmarks.flywheel.distributions DIR")
    ended(lambda: main(sys.argv[1]))
