"""The tests that somebody means who does not name them quite as pytest does."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches

from agent.errors import MeasureError
from agent.measure import SuiteReport
from agent.measure.ids import file_of

__all__ = ["Names"]

NEAR = 3
CUTOFF = 0.5


class Names:
    """The tests of a state: those of the base state by its report, those in test files that the state has added (`own`)
    and those in other files. `placed` gives the path, relative to the workspace, of a file that is there, and nothing
    for one that is not. `edited` are the paths that the state has changed."""

    def __init__(
        self,
        baseline: SuiteReport,
        placed: Callable[[str], str],
        own: Collection[str] = (),
        edited: Collection[str] = (),
    ) -> None:
        self._placed, self._own, self._edited = placed, tuple(own), edited
        self._known = {**{file: _key(file) for file in own}, **{each: _key(each) for each in _holders(baseline)}}
        self._files = [each for each in self._known if "::" not in each]

    def found(self, name: str) -> tuple[str, ...]:
        """The ids that a name stands for: a test, class or file as it is, a folder for the files in it. A path may
        begin above the workspace or below it, and be dotted, where that leaves no doubt.

        Raises:
            MeasureError: there is no such test, or several may be meant.
        """
        path, colons, rest = name.strip().partition("::")
        path = posixpath.normpath(path)
        whole = path + colons + rest
        if self.known(whole):
            return (whole,)
        if not rest and (inside := self._folder(path)):
            return inside
        if path.endswith(".py") and path not in self._files and (file := self._placed(path)):
            whole = file + colons + rest
            if file not in self._files or self.known(whole):
                return (whole,)
        meant = self._meant(path, whole)
        if len(meant) != 1:
            raise MeasureError(self._complaint(name, path, rest, meant))
        return tuple(meant)

    def known(self, test: str) -> bool:
        """Whether there is a test of this name, or may be: what is in files that were added is not known."""
        return test in self._known or test.split("[", 1)[0] in self._known or file_of(test) in self._own

    def selected(self, test: str) -> bool:
        """Whether the task's own command runs the test."""
        return self.known(test) and file_of(test) not in self._own

    def _folder(self, path: str) -> tuple[str, ...]:
        """The files in a folder of the workspace, whose own path may be before it."""
        parts = path.strip("/").split("/")
        for begin in range(len(parts) if path.startswith("/") else 1):
            folder = "/".join(parts[begin:]) + "/"
            if inside := tuple(file for file in self._files if file.startswith(folder) or path == "."):
                return inside
        return ()

    def _meant(self, path: str, whole: str) -> list[str]:
        """What ends in this name, or else what this name ends in: the longest."""
        key = _key(whole)
        ending = [each for each, known in self._known.items() if f".{known}".endswith(f".{key}")]
        ending += [each + whole[len(path) :] for each in self._own if f".{_key(each)}".endswith(f".{_key(path)}")]
        if ending:
            return list(dict.fromkeys(ending))
        begun = [each for each, known in self._known.items() if f".{key}".endswith(f".{known}")]
        begun += [each for file in self._own if (each := _inside(file, key))]
        return sorted(begun, key=len)[-1:]

    def _complaint(self, name: str, path: str, rest: str, meant: list[str]) -> str:
        if meant:
            return f"{name[:200]!r} may be {' or '.join(meant[:NEAR])}: name one of them"
        file = next((each for each in self._files if f".{_key(path)}".endswith(f".{_key(each)}")), "")
        whole, last = f"{file or path}::{rest}" if rest else path, rest.rpartition("::")[2]
        candidates = [each for each in self._known if not file or file_of(each) == file]
        near = [each for each in candidates if last and each.endswith(f"::{last}")]
        near += get_close_matches(whole, candidates, n=NEAR, cutoff=CUTOFF)
        hint = f"; near it are {', '.join(list(dict.fromkeys(near))[:NEAR])}" if near else ""
        if file in self._edited:
            hint += "; what is added to a test file that was there before is put back before a run: use a new file"
        return f"there is no test {name[:200]!r}{hint}"


def _holders(baseline: SuiteReport) -> Iterator[str]:
    """The files of the tests, their classes and functions, and they themselves."""
    for test in baseline.outcomes:
        parts = test.split("[", 1)[0].split("::")
        yield from ("::".join(parts[:end]) for end in range(1, len(parts) + 1))
        yield test


def _key(name: str) -> str:
    """A name as dots have it, whichever way it was written."""
    before, bracket, parameters = name.partition("[")
    path, _, rest = before.partition("::")
    parts = [*path.removesuffix(".py").strip("/").split("/"), *rest.split("::")]
    return ".".join(filter(None, parts)) + bracket + parameters


def _inside(file: str, key: str) -> str:
    """The id of a dotted name in this file; empty where it is not in it."""
    _, found, rest = f".{key}".rpartition(f".{_key(file)}.")
    return f"{file}::{rest.replace('.', '::')}" if found else ""


def likely_file(name: str, files: Collection[str]) -> str | None:
    """Which of these files of tests a name means that stands for a test; None where none is meant."""
    file = file_of(name)
    if file in files:
        return file
    return max((each for each in files if f".{_key(name)}.".find(f".{_key(each)}.") >= 0), key=len, default=None)
