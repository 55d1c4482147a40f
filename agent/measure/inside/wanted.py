"""The ids of tests: which are wanted, and what need not be collected for them. Stdlib only, Python 3.8 and later.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any

# A test may patch this module; what is collected afterwards must not depend on that.
realpath, is_link = os.path.realpath, os.path.islink


class Wanted:
    """The ids of wanted tests, or of files, classes and functions that contain them; none: all tests are wanted."""

    def __init__(self, ids: Collection[str]) -> None:
        self.ids = frozenset(ids)
        self.leading = leading(self.ids)
        self.files: frozenset[str] = frozenset()
        self.folders: dict[str, str] = {}
        """The real paths of folders, cached."""
        self.narrowed: tuple[Any, set[str]] = (None, set())
        """The last file or class visited, and the wanted names in it; none: all."""

    def look_in(self, root: str) -> None:
        """Set the folder that ids are relative to."""
        self.files = frozenset(realpath(os.path.join(root, each.split("::")[0])) for each in self.ids)

    def paths(self, root: str) -> list[str]:
        """The files and folders that contain wanted tests."""
        return [os.path.join(root, file) for file in sorted({each.split("::")[0] for each in self.ids})]

    def covers(self, nodeid: str) -> bool:
        """Whether a test is wanted."""
        return not self.ids or covers(self.ids, nodeid)

    def ignores(self, path: str) -> bool | None:
        """Whether a file or folder can be skipped because it contains no wanted test."""
        if not self.files or os.path.basename(path) == "__init__.py":
            return None
        real = self.real(path)
        inside = any(w == real or w.startswith(real + os.sep) or real.startswith(w + os.sep) for w in self.files)
        return None if inside else True

    def real(self, path: str) -> str:
        """Like `os.path.realpath` of an absolute path, but resolving each folder only once."""
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or is_link(path):
            return realpath(path)
        if folder not in self.folders:
            self.folders[folder] = realpath(folder)
        return os.path.join(self.folders[folder], name)

    def passes_over(self, collector: Any, name: str) -> bool:
        """Whether the member `name` of a file or class contains no wanted test."""
        if self.narrowed[0] is not collector:
            self.narrowed = collector, self.only(collector)
        return bool(self.narrowed[1]) and name not in self.narrowed[1]

    def only(self, collector: Any) -> set[str]:
        """The names to collect in a file or class; none: all. A wanted test without a function or class of that name
        may come from any of them, through a plugin."""
        names = set() if self.covers(collector.nodeid) else self.leading.get(collector.nodeid, set())
        return names if names.issubset(dir(collector.obj)) else set()


def covers(wanted: Collection[str], nodeid: str) -> bool:
    """Whether a wanted id is this test, or a file, class or unparametrised function that contains it."""
    if nodeid in wanted:
        return True
    parts = nodeid.split("[", 1)[0].split("::")
    return any("::".join(parts[:end]) in wanted for end in range(1, len(parts) + 1))


def numbered(test: str, seen: dict[str, int]) -> str:
    """The id of the next test of this name: a repeated name is another test."""
    seen[test] = seen.get(test, 0) + 1
    return test if seen[test] == 1 else "%s (%d)" % (test, seen[test])


def leading(wanted: Collection[str]) -> dict[str, set[str]]:
    """The files and classes to visit for these ids, and the wanted names in each."""
    names: dict[str, set[str]] = {}
    for file, _, rest in (each.partition("::") for each in wanted):
        for name in rest.split("[", 1)[0].split("::"):
            names.setdefault(file, set()).add(name)
            file += "::" + name
    return names


def functions_in(path: str, pattern: re.Pattern[str]) -> list[str]:
    """The names of the test functions in a file, without running or parsing it: some files take seconds."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return pattern.findall(file.read())
    except OSError:
        return []
