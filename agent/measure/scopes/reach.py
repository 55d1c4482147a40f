"""Count the import steps that lead from a file to a change, on the shortest path.

A step is an import of what is changed, or of a file that leads there. Weaker links cost more: a package that runs
because something else in it is imported, a module named in a string, a file beside a test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from posixpath import basename, dirname

from agent.measure.scopes.index import Index
from agent.measure.scopes.modules import Definition, Modules, above

IMPORT = 1.0
PER_LEVEL, UNRELATED_NAMES = 0.25, 0.75
"""Extra cost if the imported names are not changed themselves: for each level of use between them and a changed name,
and at most. Names unrelated to the change cost the maximum."""
MENTION = 1.5
BESIDE_MENTION = 2.5
"""Modules of a package that a string names."""
CONFTEST = 1.0
BESIDE = 3.0
"""Files beside a test: running the tests of a folder may load all of them."""
PACKAGE = 6.0
"""A package that runs because something in it is imported."""
DYNAMIC = 6.0
"""Files in or below the folder of a file that has imports known only when it runs."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of the import graph: one file needs another."""

    cost: float
    names: frozenset[str] | None
    """The names that it imports; None: unknown."""


class ImportGraph:
    """Which files of an index need which."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._modules = Modules(index.files)
        self._needed_by: dict[str, dict[str, Edge]] = {}
        for path in index.files:
            for needed, edge in self._edges(path):
                if needed != path and needed in index.files:
                    _keep(self._needed_by.setdefault(needed, {}), path, edge)

    def steps(self, touched: Mapping[str, Mapping[str, int] | None]) -> dict[str, float]:
        """Return, for each file from which a path leads to a changed file, the steps to the nearest one. `touched`: the
        `FileChange.touched` of each changed file."""
        found: dict[str, float] = {}
        pending: list[tuple[float, str]] = []
        for path, names in touched.items():
            heappush(pending, (0.0, path))
            for user, steps in self._users(path, names):
                heappush(pending, (steps, user))
        while pending:
            steps, path = heappop(pending)
            if path in found:
                continue
            found[path] = steps
            for user, edge in self._needed_by.get(path, {}).items() if path not in touched else ():
                if user not in found:
                    heappush(pending, (steps + edge.cost, user))
        return found

    def _users(self, path: str, names: Mapping[str, int] | None) -> Iterator[tuple[str, float]]:
        if path not in self._index.files:
            yield from self._mentioned(path)
            yield from self._around(path)
        for user, edge in self._needed_by.get(path, {}).items():
            more = 0.0
            if names is not None and edge.names is not None:
                distance = min((names[name] for name in edge.names & names.keys()), default=UNRELATED_NAMES / PER_LEVEL)
                more = min(UNRELATED_NAMES, PER_LEVEL * distance)
            yield user, edge.cost + more

    def _mentioned(self, path: str) -> Iterator[tuple[str, float]]:
        """Files with a string that is the name of this non-Python file, or the end of its path."""
        name = basename(path)
        for user, source in self._index.files.items():
            ends = [each for each in source.mentions if each.endswith(name) and f"/{path}".endswith(f"/{each}")]
            if ends:
                yield user, IMPORT

    def _around(self, path: str) -> Iterator[tuple[str, float]]:
        """The files of the nearest folder around a file that holds Python files and is not the workspace itself."""
        for distance, folder in enumerate(above(path)):
            below = self._modules.below(folder)
            if below:
                yield from ((file, BESIDE + distance) for file in below)
                return

    def _edges(self, path: str) -> Iterator[tuple[str, Edge]]:
        """The files that a file needs."""
        yield from self._imported(path)
        yield from self._by_strings(path)
        if self._index.files[path].dynamic:
            yield from ((file, Edge(DYNAMIC, None)) for file in self._modules.below(dirname(path)))
        if _is_among_tests(dirname(path)):
            helpers = (file for file in self._modules.inside(path) if not _is_test(file))
            yield from ((file, Edge(BESIDE, None)) for file in helpers)
        yield from ((f"{folder}/conftest.py".lstrip("/"), Edge(CONFTEST, None)) for folder in above(path))

    def _imported(self, path: str) -> Iterator[tuple[str, Edge]]:
        for use in self._modules.uses(path):
            yield from _named(use.definitions, IMPORT)
            yield from ((package, Edge(PACKAGE, None)) for package in use.modules_run)

    def _by_strings(self, path: str) -> Iterator[tuple[str, Edge]]:
        for text in self._index.files[path].mentions:
            if text.endswith(".py"):
                yield from ((file, Edge(MENTION, None)) for file in self._modules.ending_in(text))
            definitions = frozenset[Definition]() if "/" in text else frozenset(self._modules.named(path, text))
            yield from _named(definitions, MENTION)
            packages = (
                definition.module
                for definition in definitions
                if not definition.name and definition.module.endswith("/__init__.py")
            )
            for package in packages:
                yield from ((file, Edge(BESIDE_MENTION, None)) for file in self._modules.inside(package))


def _named(definitions: Collection[Definition], cost: float) -> Iterator[tuple[str, Edge]]:
    names: dict[str, set[str]] = {}
    for definition in definitions:
        names.setdefault(definition.module, set()).add(definition.name)
    for module, found in names.items():
        yield module, Edge(cost, None if "" in found else frozenset(found))


def _keep(edges: dict[str, Edge], user: str, edge: Edge) -> None:
    """Keep the nearer of two edges between the same files; edges of equal cost are merged."""
    known = edges.get(user)
    if known is None or edge.cost < known.cost:
        edges[user] = edge
    elif edge.cost == known.cost and known.names is not None:
        edges[user] = Edge(edge.cost, None if edge.names is None else known.names | edge.names)


def _is_among_tests(folder: str) -> bool:
    return any(part.startswith("test") or part.endswith("tests") for part in folder.split("/"))


def _is_test(file: str) -> bool:
    """Whether a file is named like a test; other tests do not need such files."""
    name = basename(file)
    return name.startswith("test") or name.endswith("_test.py")
