"""Find the test files that a change can reach, nearest first, without running project code.

Invariant: every test file that imports a changed file, directly or indirectly, is included. The number of steps, the
file's name and the identifiers it shares with the change determine the order, and can add further files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from posixpath import basename, dirname

from agent.measure.scopes.changed import FileChange
from agent.measure.scopes.index import Index
from agent.measure.scopes.reach import ImportGraph
from agent.measure.scopes.similarity import Similarity

UNLIKE_NAME, UNLIKE_WORDS = 2.0, 3.0
"""Distance added when the name, or the words, of a file are nothing like the change."""
UNREACHED = 15.0
"""Steps counted for a file without an import path to the change."""
ALIKE_NAME, ALIKE_WORDS = 0.5, 0.3
"""From this similarity on, the name or the words suffice without an import path."""
DECIDING = frozenset({"conftest.py", "setup.py", "setup.cfg", "pyproject.toml", "tox.ini", "pytest.ini", "noxfile.py"})
"""Files that decide how everything is built and run."""


@dataclass(frozen=True, slots=True)
class RelatedTest:
    """A test file that a change can reach."""

    file: str
    distance: float
    """0 for a changed file itself; else the square root of the import steps (because distant steps differ little), plus
    up to 5 if name and words do not match."""
    steps: float | None
    """Import steps to the change, for people; None: no path leads there."""


def related(index: Index, changed: Mapping[str, FileChange], tests: Collection[str]) -> list[RelatedTest]:
    """The files among `tests` that the changed files can reach, sorted by distance, then by name.

    All of `tests` if a change concerns how everything is run, or the top-level package's `__init__.py`.
    """
    files = tuple(sorted(set(tests)))
    graph, similarity = _prepared(index, files)
    steps = graph.steps({path: change.touched for path, change in changed.items()})
    names, words = similarity.by_name(changed), similarity.by_words(changed)
    deciding = any(map(_decides, changed))
    found = [RelatedTest(file, 0.0, 0.0) for file in files if file in changed]
    for file in files:
        if file in changed:
            continue
        path_steps, name, word = steps.get(file), names.get(file, 0.0), words.get(file, 0.0)
        if path_steps is None and name < ALIKE_NAME and word < ALIKE_WORDS and not deciding:
            continue
        far = sqrt(UNREACHED if path_steps is None else path_steps)
        distance = far + UNLIKE_NAME * (1 - name) + UNLIKE_WORDS * (1 - word)
        found.append(RelatedTest(file, round(distance, 3), path_steps))
    return sorted(found, key=lambda near: (near.distance, near.file))


@lru_cache(maxsize=4)
def _prepared(index: Index, files: tuple[str, ...]) -> tuple[ImportGraph, Similarity]:
    """What the calls for all changes share; building it takes longer than everything else."""
    return ImportGraph(index), Similarity(index, files)


def _decides(path: str) -> bool:
    """Whether a file decides how everything is built and run, or is a top-level package's `__init__.py`."""
    name = basename(path)
    if name in DECIDING or (name.startswith("requirements") and name.endswith((".txt", ".in"))):
        return name != "conftest.py" or not dirname(path)
    return name == "__init__.py" and path.removeprefix("src/").count("/") == 1
