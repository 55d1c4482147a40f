"""Find the tests that a name refers to, even if it is not spelled as the test runner spells it.

A test may be named by the first line of its documentation, or as unittest prints it (as in SWE-bench):
`test_x (a.tests.Case.test_x)`, or `test_x (a.tests.Case)` before Python 3.11.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import get_close_matches

from agent.errors import MeasureError
from agent.measure import SuiteReport
from agent.measure.ids import file_of

PRINTED = re.compile(r"(?P<test>[^\s()]+) \((?P<where>[\w.]+)\)(?: [\[(].*)?", re.DOTALL)
"""A test as unittest prints it, possibly followed by a `subTest`."""
FIXTURES = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")
UNREAD = "unittest.loader._FailedTest"
NEAR = 3
CUTOFF = 0.5


class Names:
    """The tests of a state: those in the baseline, which may not have reached all files, those in test files that the
    state added or changed (`own`), and those in other files. `existing` returns the path, relative to the workspace, of
    an existing file, else ""."""

    def __init__(self, baseline: SuiteReport, existing: Callable[[str], str], own: Collection[str] = ()) -> None:
        self._existing, self._own = existing, tuple(own)
        self._unread = tuple(dict.fromkeys((*own, *baseline.late)))
        """Test files whose tests are unknown."""
        self._titles = baseline.titles
        self._known = {**{file: _key(file) for file in own}, **{each: _key(each) for each in _holders(baseline)}}
        self._files = [each for each in self._known if "::" not in each]

    def found(self, name: str) -> tuple[str, ...]:
        """Return the ids that a name stands for: one test, class or file, or the files of a folder. A path may start
        above or below the workspace, or be dotted, as long as it is unambiguous.

        Raises:
            MeasureError: no test, or more than one, matches.
        """
        meant = self.meant(name)
        path, _, rest = _split(name)
        if len(meant) == 1 or (meant and not rest and meant == self._folder(path)):
            return meant
        raise MeasureError(self._complaint(name, path, rest, meant))

    def meant(self, name: str) -> tuple[str, ...]:
        """Return the ids that a name may stand for; unlike with `found`, there may be none or several."""
        name = name.strip()
        if name in self._known:
            return (name,)
        if name in self._titles:
            return (self._titles[name],)
        path, colons, rest = _split(name)
        whole = path + colons + rest
        if self.known(whole):
            return (whole,)
        if not rest and (inside := self._folder(path)):
            return inside
        if path.endswith(".py") and path not in self._files and (file := self._existing(path)):
            whole = file + colons + rest
            if file not in self._files or self.known(whole):
                return (whole,)
        return tuple(self._meant(path, whole))

    def known(self, test: str) -> bool:
        """Whether a test of this name exists, or may exist in a file whose tests are unknown."""
        return test in self._known or test.split("[", 1)[0] in self._known or file_of(test) in self._unread

    def selected(self, test: str) -> bool:
        """Whether the task's own command runs this test."""
        return self.known(test) and file_of(test) not in self._own

    def _folder(self, path: str) -> tuple[str, ...]:
        """The test files in a folder; its path may begin with that of the workspace."""
        parts = path.strip("/").split("/")
        for begin in range(len(parts) if path.startswith("/") else 1):
            folder = "/".join(parts[begin:]) + "/"
            if inside := tuple(file for file in self._files if file.startswith(folder) or path == "."):
                return inside
        return ()

    def _meant(self, path: str, whole: str) -> list[str]:
        """Return the ids that end in this name; if there are none, the longest id that the name itself ends in."""
        key = _key(whole)
        longer = [each for each, known in self._known.items() if f".{known}".endswith(f".{key}")]
        longer += [each + whole[len(path) :] for each in self._unread if f".{_key(each)}".endswith(f".{_key(path)}")]
        if longer:
            return list(dict.fromkeys(longer))
        shorter = [each for each, known in self._known.items() if f".{key}".endswith(f".{known}")]
        shorter += [each for file in self._unread if (each := _inside(file, key))]
        return sorted(shorter, key=len)[-1:]

    def _complaint(self, name: str, path: str, rest: str, meant: Sequence[str]) -> str:
        if meant:
            return f"{name[:200]!r} is ambiguous: it may be {' or '.join(meant[:NEAR])}; name one of them"
        file = next((each for each in self._files if f".{_key(path)}".endswith(f".{_key(each)}")), "")
        whole, last = f"{file or path}::{rest}" if rest else path, rest.rpartition("::")[2]
        candidates = [each for each in self._known if not file or file_of(each) == file]
        near = [each for each in candidates if last and each.endswith(f"::{last}")]
        near += get_close_matches(whole, candidates, n=NEAR, cutoff=CUTOFF)
        hint = f"; near it are {', '.join(list(dict.fromkeys(near))[:NEAR])}" if near else ""
        return f"there is no test {name[:200]!r}{hint}"


def _holders(baseline: SuiteReport) -> Iterator[str]:
    """The ids of all tests and of the files, classes and functions around them."""
    yield from baseline.late
    for test in baseline.outcomes:
        parts = test.split("[", 1)[0].split("::")
        yield from ("::".join(parts[:end]) for end in range(1, len(parts) + 1))
        yield test


def likely_file(name: str, files: Collection[str]) -> str | None:
    """The test file that a test's name points to, whether or not the test exists there; None if unclear."""
    parts = _parts(name)
    overlaps = {file: _overlap(parts, _parts(file))[1] for file in files}
    most = max(overlaps.values(), default=0)
    likely = [file for file, overlap in overlaps.items() if overlap == most > 0]
    return likely[0] if len(likely) == 1 else None


def likely_id(name: str, files: Collection[str]) -> str | None:
    """The id of a test of this name in its `likely_file`."""
    file = likely_file(name, files)
    if file is None:
        return None
    parts = _parts(name)
    begin, length = _overlap(parts, _parts(file))
    return "::".join([file, *parts[begin + length :]]) + "".join(_spelled(name).partition("[")[1:])


def _overlap(name: Sequence[str], file: Sequence[str]) -> tuple[int, int]:
    """Return where in a name a file's path begins, and how many parts they share: the whole path anywhere in the name,
    else the end of the path at the start of the name."""
    whole = len(file)
    inside = next((begin for begin in range(len(name)) if name[begin : begin + whole] == file), None)
    if inside is not None:
        return inside, whole
    return 0, next((end for end in range(min(whole, len(name)), 0, -1) if name[:end] == file[-end:]), 0)


def _parts(name: str) -> list[str]:
    """The parts of a name or path, without parameters and `__init__`."""
    parts = _key(name).partition("[")[0].split(".")
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


def _spelled(name: str) -> str:
    """The dotted name of a test named as unittest prints it; other names unchanged."""
    printed = PRINTED.fullmatch(name.strip())
    if printed is None:
        return name.strip()
    test, where = printed["test"], printed["where"]
    if where.startswith(UNREAD):
        return test
    return where if test in FIXTURES or where.endswith(f".{test}") else f"{where}.{test}"


def _split(name: str) -> tuple[str, str, str]:
    """The path, the colons and the rest of a name."""
    path, colons, rest = _spelled(name).partition("::")
    return posixpath.normpath(path), colons, rest


def _key(name: str) -> str:
    """A name in dotted form, whichever way it was written."""
    name = _spelled(name)
    before, bracket, parameters = name.partition("[")
    path, _, rest = before.partition("::")
    parts = [*path.removesuffix(".py").strip("/").split("/"), *rest.split("::")]
    return ".".join(filter(None, parts)) + bracket + parameters


def _inside(file: str, key: str) -> str:
    """The id of a dotted name in this file; empty if it is not there."""
    _, found, rest = f".{key}".rpartition(f".{_key(file)}.")
    return f"{file}::{rest.replace('.', '::')}" if found else ""
