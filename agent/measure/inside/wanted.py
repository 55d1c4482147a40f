"""Which tests are wanted, and what need not be looked into for them. Stdlib only, Python 3.8 and later.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

# Tests patch this module; what is collected after one that did must not depend on it.
realpath, is_link = os.path.realpath, os.path.islink


class Wanted:
    """The ids of tests, or of files, classes and functions that hold them; none: all tests are wanted."""

    def __init__(self, ids: Collection[str]) -> None:
        self.ids = frozenset(ids)
        self.leading = leading(self.ids)
        self.files: frozenset[str] = frozenset()
        self.folders: dict[str, str] = {}
        """Where folders are really, of those that were asked for."""
        self.narrowed: tuple[Any, set[str]] = (None, set())
        """The file or class that was looked at last, and the names that are wanted in it; none: all."""

    def look_in(self, root: str) -> None:
        """Ids are relative to this folder."""
        self.files = frozenset(realpath(os.path.join(root, each.split("::")[0])) for each in self.ids)

    def paths(self, root: str) -> list[str]:
        """The files and folders that hold them."""
        return [os.path.join(root, file) for file in sorted({each.split("::")[0] for each in self.ids})]

    def covers(self, nodeid: str) -> bool:
        """Whether a test is wanted."""
        return not self.ids or covers(self.ids, nodeid)

    def ignores(self, path: str) -> bool | None:
        """Whether a file or folder can be passed over: no wanted test is in it."""
        if not self.files or os.path.basename(path) == "__init__.py":
            return None
        real = self.real(path)
        inside = any(w == real or w.startswith(real + os.sep) or real.startswith(w + os.sep) for w in self.files)
        return None if inside else True

    def real(self, path: str) -> str:
        """As `os.path.realpath` of an absolute path; of the files in one folder, that of the folder is found once."""
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or is_link(path):
            return realpath(path)
        if folder not in self.folders:
            self.folders[folder] = realpath(folder)
        return os.path.join(self.folders[folder], name)

    def passes_over(self, collector: Any, name: str) -> bool:
        """Whether no wanted test is in what a file or class calls so."""
        if self.narrowed[0] is not collector:
            self.narrowed = collector, self.only(collector)
        return bool(self.narrowed[1]) and name not in self.narrowed[1]

    def only(self, collector: Any) -> set[str]:
        """The names to look at in a file or class; none: all. A wanted test that no function or class there is called
        like may come from any: a plugin has named or made it."""
        names = set() if self.covers(collector.nodeid) else self.leading.get(collector.nodeid, set())
        return names if names.issubset(dir(collector.obj)) else set()


def covers(wanted: Collection[str], nodeid: str) -> bool:
    """Whether a wanted id is this test, or a file, class or unparametrised function that holds it."""
    if nodeid in wanted:
        return True
    parts = nodeid.split("[", 1)[0].split("::")
    return any("::".join(parts[:end]) in wanted for end in range(1, len(parts) + 1))


def leading(wanted: Collection[str]) -> dict[str, set[str]]:
    """What has to be looked into for these, their files and classes, and the names that are wanted in each."""
    names: dict[str, set[str]] = {}
    for file, _, rest in (each.partition("::") for each in wanted):
        for name in rest.split("[", 1)[0].split("::"):
            names.setdefault(file, set()).add(name)
            file += "::" + name
    return names
