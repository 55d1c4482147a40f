"""The repositories for measurements: published source packages, fetched once and turned into git repositories."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.data import clones
from benchmarks.data.unpacking import unpack
from sandboxes import Workspace

ENV = "/opt/env"
MOUNT = "/workspace"
_PYTEST = "pytest==8.4.2"
_IGNORED = "__pycache__/\n*.py[cod]\n.pytest_cache/\n"


@dataclass(frozen=True, slots=True)
class Repository:
    """A project, one of its tests, and a source file that the test runs."""

    name: str
    package: str
    """The package for pip, with its version; "" for our own files, which need only the image's Python."""
    tests: str
    """The file of tests for the task; the baseline runs all of it."""
    test: str
    """The test that measures a candidate."""
    edited: str
    """A source file that the test imports."""
    requirements: tuple[str, ...] = ()
    """The packages that its tests need in addition to pytest."""
    source: str = ""
    """The folder with its packages; "" for the top."""

    @property
    def project(self) -> str:
        """The project. Repositories of one project differ only in the file and the test."""
        return self.package or self.name

    @property
    def environment(self) -> tuple[str, ...]:
        """Shell commands that make the virtual environment for its tests."""
        if not self.package:
            return ()
        packages = " ".join((_PYTEST, *self.requirements))
        return (f"python3 -m venv {ENV}", f"{ENV}/bin/pip install -q --disable-pip-version-check {packages}")

    @property
    def env(self) -> dict[str, str]:
        """The environment variables for its commands, the same on both sides."""
        path = f"{ENV}/bin:/usr/local/bin:/usr/bin:/bin"
        return {"PATH": path, "VIRTUAL_ENV": ENV, "PYTHONPATH": f"{MOUNT}/{self.source}".rstrip("/")}

    def workspace(self, path: Path) -> Workspace:
        """The workspace for our side's base state."""
        return Workspace(path=path, mount=MOUNT, environment=self.environment, env=self.env, byte_code=True)


_FLASK = ("werkzeug==3.1.3", "jinja2==3.1.6", "click==8.2.1", "itsdangerous==2.2.0", "blinker==1.9.0")
_SYMPY = ("mpmath==1.3.0", "hypothesis==6.140.2")

_TINY = {
    "value.py": "x = 1  # edit 000000\n",
    "test_value.py": "from value import x\n\n\ndef test_one():\n    assert x == 1\n",
}

REPOSITORIES = {
    "tiny": Repository(
        name="tiny", package="", tests="test_value.py", test="test_value.py::test_one", edited="value.py"
    ),
    "small": Repository(
        name="small",
        package="more-itertools==11.2.1",
        tests="tests/test_recipes.py::TakeTests",
        test="tests/test_recipes.py::TakeTests::test_simple_take",
        edited="more_itertools/recipes.py",
    ),
    "medium": Repository(
        name="medium",
        package="flask==3.1.3",
        tests="tests/test_basic.py",
        test="tests/test_basic.py::test_options_work",
        edited="src/flask/helpers.py",
        requirements=_FLASK,
        source="src",
    ),
    "large": Repository(
        name="large",
        package="sympy==1.14.0",
        tests="sympy/core/tests/test_logic.py",
        test="sympy/core/tests/test_logic.py::test_fuzzy_not",
        edited="sympy/core/logic.py",  # among the first files that it imports
        requirements=_SYMPY,
    ),
    "large-late": Repository(
        name="large-late",
        package="sympy==1.14.0",
        tests="sympy/solvers/tests/test_decompogen.py",
        test="sympy/solvers/tests/test_decompogen.py::test_compogen",
        edited="sympy/solvers/decompogen.py",  # among the last
        requirements=_SYMPY,
    ),
}


def cache() -> Path:
    """The folder with fetched repositories."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ramify" / "perf"


def checkout(repository: Repository, work: Path, say: Callable[[str], None]) -> Path:
    """A git repository with the project's files in one commit: fetched once, or made in `work` from our own files.

    Raises:
        subprocess.CalledProcessError: pip failed.
        benchmarks.data.instances.InstanceBroken: git failed.
    """
    if not repository.package:
        return _written(work / repository.name)
    return fetched(repository.package, say)


def fetched(package: str, say: Callable[[str], None]) -> Path:
    """A git repository with the files of a source package (NAME==VERSION) in one commit, kept in our cache.

    Raises:
        subprocess.CalledProcessError: pip failed.
        benchmarks.data.instances.InstanceBroken: git failed.
    """
    place = cache() / package.replace("==", "-")
    if not place.exists():
        say(f"fetching {package}")
        cache().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache()) as folder:
            unpack(_fetch(package, Path(folder)), Path(folder, "unpacked"))
            (unpacked,) = Path(folder, "unpacked").iterdir()
            _commit(unpacked)
            unpacked.rename(place)
    return place


def _written(folder: Path) -> Path:
    folder.mkdir()
    for path, text in _TINY.items():
        (folder / path).write_text(text)
    _commit(folder)
    return folder


def _commit(folder: Path) -> None:
    """Turn a folder into a git repository with one commit, which ignores byte code as real ones do."""
    with (folder / ".gitignore").open("a") as ignores:
        ignores.write(_IGNORED)
    clones.create(folder)


def _fetch(package: str, folder: Path) -> Path:
    """Download the source package with this machine's pip."""
    name = package.partition("==")[0]
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-binary", name, "-d", str(folder), package], check=True)
    (archive,) = folder.glob("*.tar.gz")
    return archive
