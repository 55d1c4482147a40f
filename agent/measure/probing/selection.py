"""Selection: which tests a patch is likeliest to break, by the lines that they executed in the base state.

A matter of cost: where all tests would take too long, a state is measured by these (`agent.measure.scopes.scopes`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agent.measure.diffs import FilePatch
from agent.measure.probing.spectrum import Spectrum

__all__ = ["affected"]


def affected(spectrum: Spectrum, patches: Iterable[FilePatch]) -> frozenset[str]:
    """The tests that executed a changed line of the base state, or a line beside which lines are added.

    Where such a line runs while its module is imported, or no test executed one, every test that executed the file is
    affected. Files that no test executed, new ones for instance, say nothing: they act through others.
    """
    return frozenset(test for patch in patches for test in _affected_by(spectrum, patch))


def _affected_by(spectrum: Spectrum, patch: FilePatch) -> Collection[str]:
    users = {test: lines[patch.path] for test, lines in spectrum.executed.items() if patch.path in lines}
    changed = patch.gone | patch.beside
    hit = [test for test, lines in users.items() if not changed.isdisjoint(lines)]
    at_import = not patch.gone.isdisjoint(spectrum.imported.get(patch.path, ()))
    return users if at_import or not hit else hit
