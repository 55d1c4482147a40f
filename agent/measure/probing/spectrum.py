"""Spectrum: which lines of the workspace each test executed, and how it ended. Used for fault localisation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.files import to_json
from agent.measure import Outcome
from agent.measure.diffs import FilePatch
from agent.parsing import adapter, loads

Lines = Mapping[str, tuple[int, ...]]
"""The executed 1-based lines, sorted, by file (relative to the workspace, `/`-separated)."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The lines that one traced test run executed, except in test files and other protected files."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Outcome by test id, in running order."""
    executed: Mapping[str, Lines] = field(default_factory=dict)
    """By test id: the lines that ran between set-up and tear-down, even of a test that timed out."""
    imported: Lines = field(default_factory=dict)
    """The lines that ran outside any test, mostly during imports."""
    problem: str = ""
    """Why lines are missing, for people; empty if none are."""

    def lines_of(self, test: str) -> frozenset[tuple[str, int]]:
        """The lines that a test executed, each as its file and number."""
        return frozenset((path, line) for path, lines in self.executed.get(test, {}).items() for line in lines)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for a journal."""
        plain: dict[str, Any] = loads(to_json(self))
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spectrum:
        """Read the output of `to_json`; what is missing is empty. Raises ValueError for other data."""
        spectrum: Spectrum = adapter(Spectrum).validate_python(data)
        return spectrum


def affected(spectrum: Spectrum, patches: Iterable[FilePatch]) -> frozenset[str]:
    """The tests that executed a changed line of the base state, or a line beside which lines are added.

    If such a line runs while its module is imported, or if no test executed one, every test that executed the file is
    affected. Files that no test executed, such as new ones, affect no test here: they take effect through other files.
    """
    return frozenset(test for patch in patches for test in _affected_by(spectrum, patch))


def _affected_by(spectrum: Spectrum, patch: FilePatch) -> Collection[str]:
    users = {test: lines[patch.path] for test, lines in spectrum.executed.items() if patch.path in lines}
    changed = patch.gone | patch.beside
    hit = [test for test, lines in users.items() if not changed.isdisjoint(lines)]
    at_import = not patch.gone.isdisjoint(spectrum.imported.get(patch.path, ()))
    return users if at_import or not hit else hit
