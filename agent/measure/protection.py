"""Find the files that decide how tests end. They are restored from the base state before tests run."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import PurePosixPath

from agent.measure import SuiteReport
from agent.measure.adapters import Adapter
from agent.measure.adapters.logs import LOG
from agent.measure.adapters.registry import ADAPTERS, adapter_of, framework_of
from agent.measure.ids import file_of, is_source_doctest
from agent.task import Task
from sandboxes import Change

TEST_FILES = ("test_*.py", "*_test.py")
INI_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
RUNNER_FILES = ("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", *INI_FILES)
SETTINGS_FILES = ("setup.cfg", "pyproject.toml", "tox.ini")
BUILT = ("*.pyc", "*.egg-info/*", "*.dist-info/*", "*site-packages/*", "*dist-packages/*", ".venv/*", "venv/*")
RUNNERS = {
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "exceptiongroup",
    "tomli",
    "coverage",
    "py",
}


@dataclass(frozen=True, slots=True)
class Protection:
    """The paths that decide how tests end, relative to the workspace."""

    test_files: frozenset[str]
    """The files that contained a test in the base state."""
    patterns: tuple[str, ...]
    """The task's protected paths, and scripts that its command runs."""
    roots: tuple[str, ...]
    """Folders that modules are imported from."""
    adapter: Adapter | None = None
    """What runs the tests, if not pytest; it names further files."""
    by_exit_code: bool = False
    """Whether the result rests on a command's exit code or printed text alone."""

    def covers(self, change: Change) -> bool:
        """Whether the change must be undone before tests run."""
        path = change.path
        more = (*self.adapter.manifests, *self.adapter.built) if self.adapter else ()
        return self.is_test(path) or self.configures(change) or matches(path, (*SETTINGS_FILES, *BUILT, *more))

    def is_test(self, path: str) -> bool:
        """Whether the file is a test or lies among tests."""
        folders = PurePosixPath(path).parts[:-1]
        return (
            path in self.test_files
            or matches(path, (*TEST_FILES, *(self.adapter.tests if self.adapter else ())))
            or "tests" in folders
            or folders[:1] in (("test",), ("testing",))
            or any(_beside(path, file) for file in self.test_files)
        )

    def configures(self, change: Change) -> bool:
        """Whether the file configures the runner, or shadows one of its modules."""
        more = self.adapter.config_files if self.adapter else ()
        return matches(change.path, (*RUNNER_FILES, *self.patterns, *more)) or self._shadows(change)

    def _shadows(self, change: Change) -> bool:
        path = PurePosixPath(change.path)
        if change.kind != "added":
            return False
        module, place = (path.parent, path.parent.parent) if path.stem == "__init__" else (path, path.parent)
        name = module.name.split(".")[0]
        known = name in sys.stdlib_module_names or name in RUNNERS or name.startswith("pytest_")
        return known and path.suffix in (".py", ".so", ".pyc") and str(place) in self.roots


def protect(task: Task, baseline: SuiteReport) -> Protection:
    """Return the protection for a task with this baseline. A module with doctests counts as a source, not as a test."""
    files = frozenset(file_of(test) for test in baseline.outcomes if "::" in test and not is_source_doctest(test))
    paths = re.findall(r"(?<!\w)PYTHONPATH=(\S+)", task.test_command)
    roots = [entry.strip("\"'").rstrip("/") or "." for path in paths for entry in path.split(":")]
    patterns = (*task.protected_paths, *_scripts(task.test_command))
    name = baseline.adapter if baseline.outcomes else framework_of(task.framework, task.test_command)
    by_words = baseline.adapter == "exit-code" or name.startswith(LOG)
    return Protection(files, patterns, (".", "src", "lib", *roots), adapter_of(name), by_words)


def runners_go_by(path: str) -> bool:
    """Whether a file, going by its name, configures a test runner of any language; it may also do other things."""
    others = (pattern for adapter in ADAPTERS.values() for pattern in (*adapter.config_files, *adapter.manifests))
    return matches(path, (*RUNNER_FILES, *SETTINGS_FILES, *others))


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern matches the path, its file name or a folder around it."""
    name = path.rsplit("/", 1)[-1]
    return any(fnmatch(path, p) or fnmatch(name, p) or fnmatch(path, f"{p.rstrip('/')}/*") for p in patterns)


def _beside(path: str, test_file: str) -> bool:
    """Whether the path is below a folder named `test` or `testing` that contains this test file."""
    parts = PurePosixPath(test_file).parts[:-1]
    named = [i for i, part in enumerate(parts) if part in ("test", "testing")]
    return bool(named) and path.startswith("/".join(parts[: named[0] + 1]) + "/")


def _scripts(command: str) -> tuple[str, ...]:
    """Workspace files that the command runs as programs."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    found = [word.removeprefix("./") for word in words if word.startswith("./")]
    pairs = pairwise(words)
    found += [second for first, second in pairs if re.fullmatch(r"(.*/)?(python[\d.]*|sh|bash)", first)]
    makefile = ("Makefile", "makefile", "GNUmakefile") if "make" in words else ()
    noxfile = ("noxfile.py",) if "nox" in words else ()
    return (*[name for name in found if not name.startswith("-")], *makefile, *noxfile)
