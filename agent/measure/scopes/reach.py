"""Reach: how many steps of imports lead from a file to a change, over the nearest way.

A step is an import of what is changed, or of a file that is such steps away. Ways that say less are longer: a package
that runs because something else of it is imported, a module that is named in a string, a file that lies beside a test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from posixpath import basename, dirname

from agent.measure.scopes.index import Index
from agent.measure.scopes.modules import Modules, Place, above

__all__ = ["Edge", "Graph", "Way"]

IMPORT = 1.0
REMOVE, OTHER_NAMES = 0.25, 0.75
"""More where a file imports names of a changed file that use what is changed, for each remove; and at most, which goes
for other names, too."""
MENTION = 1.5
BESIDE_MENTION = 2.5
"""The modules of a package that is named in a string."""
CONFTEST = 1.0
BESIDE = 3.0
"""What lies beside a test: whoever runs the tests of a folder may load all of it."""
PACKAGE = 6.0
"""A package that runs because something in it is imported."""
DYNAMIC = 6.0
"""What lies below a file that imports what only its run will tell."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One file needs another."""

    cost: float
    names: frozenset[str] | None
    """The names that it takes from there; None: they are not known."""


@dataclass(frozen=True, slots=True)
class Way:
    """The nearest way from a file to a change."""

    steps: float
    through: str
    """The next file on it; empty: this is the changed file itself."""
    end: str
    """The changed file."""


class Graph:
    """Which file needs which, of one index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._modules = Modules(index.files)
        self._needed_by: dict[str, dict[str, Edge]] = {}
        for path in index.files:
            for needed, edge in self._edges(path):
                if needed != path and needed in index.files:
                    _keep(self._needed_by.setdefault(needed, {}), path, edge)

    def ways(self, touched: Mapping[str, Mapping[str, int] | None]) -> dict[str, Way]:
        """The nearest way from each file that there is one from, to changed files: each with the names at its top level
        that are changed (0) or use what is at so many removes; None: it may be any."""
        found: dict[str, Way] = {}
        pending: list[tuple[float, str, str, str]] = []
        for path, names in sorted(touched.items()):
            heappush(pending, (0.0, path, "", path))
            for user, steps in self._users(path, names):
                heappush(pending, (steps, user, path, path))
        while pending:
            steps, path, through, end = heappop(pending)
            if path in found:
                continue
            found[path] = Way(steps, through, end)
            for user, edge in self._needed_by.get(path, {}).items() if path not in touched else ():
                if user not in found:
                    heappush(pending, (steps + edge.cost, user, path, end))
        return found

    def _users(self, path: str, names: Mapping[str, int] | None) -> Iterator[tuple[str, float]]:
        if path not in self._index.files:
            yield from self._mentioned(path)
            yield from self._around(path)
        for user, edge in self._needed_by.get(path, {}).items():
            more = 0.0
            if names is not None and edge.names is not None:
                removes = min((names[name] for name in edge.names & names.keys()), default=OTHER_NAMES / REMOVE)
                more = min(OTHER_NAMES, REMOVE * removes)
            yield user, edge.cost + more

    def _mentioned(self, path: str) -> Iterator[tuple[str, float]]:
        """The files that have the name of a file that is no Python, or the end of its path, in a string."""
        name = basename(path)
        for user, source in self._index.files.items():
            ends = [each for each in source.mentions if each.endswith(name) and f"/{path}".endswith(f"/{each}")]
            if ends:
                yield user, IMPORT

    def _around(self, path: str) -> Iterator[tuple[str, float]]:
        """The files of the nearest folder around a file that has any below it, and is not the whole workspace."""
        for removes, folder in enumerate(above(path)):
            below = self._modules.below(folder)
            if below:
                yield from ((file, BESIDE + removes) for file in below)
                return

    def _edges(self, path: str) -> Iterator[tuple[str, Edge]]:
        """What a file needs."""
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
            yield from _named(use.places, IMPORT)
            yield from ((package, Edge(PACKAGE, None)) for package in use.passed)

    def _by_strings(self, path: str) -> Iterator[tuple[str, Edge]]:
        for text in self._index.files[path].mentions:
            if text.endswith(".py"):
                yield from ((file, Edge(MENTION, None)) for file in self._modules.ending_in(text))
            places = frozenset[Place]() if "/" in text else frozenset(self._modules.named(path, text))
            yield from _named(places, MENTION)
            packages = (place.module for place in places if not place.name and place.module.endswith("/__init__.py"))
            for package in packages:
                yield from ((file, Edge(BESIDE_MENTION, None)) for file in self._modules.inside(package))


def _named(places: Collection[Place], cost: float) -> Iterator[tuple[str, Edge]]:
    names: dict[str, set[str]] = {}
    for place in places:
        names.setdefault(place.module, set()).add(place.name)
    for module, found in names.items():
        yield module, Edge(cost, None if "" in found else frozenset(found))


def _keep(edges: dict[str, Edge], user: str, edge: Edge) -> None:
    """Of two edges between the same files the nearer one is kept, with the names of both where they are as near."""
    known = edges.get(user)
    if known is None or edge.cost < known.cost:
        edges[user] = edge
    elif edge.cost == known.cost and known.names is not None:
        edges[user] = Edge(edge.cost, None if edge.names is None else known.names | edge.names)


def _is_among_tests(folder: str) -> bool:
    return any(part.startswith("test") or part.endswith("tests") for part in folder.split("/"))


def _is_test(file: str) -> bool:
    """Whether a file is named as tests are, which no other test needs."""
    name = basename(file)
    return name.startswith("test") or name.endswith("_test.py")
