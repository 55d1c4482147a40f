"""Distributions: real repositories to make bugs of, from the source distributions of their projects.

    python -m benchmarks.flywheel.distributions DIR

Each is made a git repository whose own tests run in it as it is: its package lies beside its tests, tests that need
more than pytest are left out (or what they need is put beside them), and no configuration of the project's applies.
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

__all__ = ["HELD_OUT", "KNOWN", "Distribution", "laid_out", "main"]

NEEDED = "tests/needed"
"""Where packages are that tests need; no bugs are made of what is below `tests`."""
CONFIGURATION = f"[pytest]\npythonpath = . {NEEDED}\npython_files = test*.py\n"
"""Of pytest; it goes before that of other files, which asks for plug-ins."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A project's release."""

    version: str
    without: Sequence[str] = ()
    """Tests that are left out, as paths."""
    needs: Sequence[str] = ()
    """Packages of tests, without what these need in their turn."""


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
"""Those that nothing is learned from in the figures of the README."""


def main(folder: str) -> int:
    """Make all that are not there yet, and print what they are to the figures."""
    made = Path(folder)
    for name, known in KNOWN.items():
        if not (made / name).exists():
            with TemporaryDirectory() as place:
                laid_out(_fetched(name, known, Path(place)), known, made / name)
    flags = [f"--repository {made / name}" for name in KNOWN] + [f"--hold-out {name}" for name in HELD_OUT]
    sys.stdout.write(" ".join(flags) + "\n")
    return 0


def laid_out(archive: Path, known: Distribution, folder: Path) -> None:
    """Make a source distribution the git repository `folder`.

    Raises:
        UsageError: the archive holds what is no file, a test that is to be left out is not there, or what is needed
            cannot be installed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as place:
        unpack(archive, Path(place))
        [root] = Path(place).iterdir()
        for each in (root / "src").glob("*"):
            each.rename(root / each.name)
        for path in known.without:
            if not (root / path).exists():
                raise UsageError(f"{archive.name} has no {path} that could be left out")
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
        said = done.stderr.decode(errors="replace").strip()[-500:]
        raise UsageError(f"pip {' '.join(arguments)} failed: {said}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give the folder for the repositories: python -m benchmarks.flywheel.distributions DIR")
    ended(lambda: main(sys.argv[1]))
