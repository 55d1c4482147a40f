"""Find the file that defines an imported name, going by the files of the workspace alone.

A name is followed through modules that only re-export it, so that a package that imports everything does not connect
everything. If two answers are possible, both are given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from posixpath import basename, dirname

from agent.measure.scopes.index import Import, Source

LIKELY = ("", "src", "lib")
"""Folders that any file is likely to import modules from; the empty one is the workspace."""
UNLIKELY = 3
"""If more folders than this hold a module of that name, and none is near the importer, they are ignored."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A module, or a name in it."""

    module: str
    """A file; or a folder ending in `/`, for a package without `__init__.py`."""
    name: str = ""
    """Empty: the module as a whole."""


@dataclass(frozen=True, slots=True)
class Use:
    """What one import brings into a file."""

    definitions: frozenset[Definition]
    """Where the imported names are defined."""
    modules_run: frozenset[str]
    """The modules that run because of the import."""


class Modules:
    """The files of a workspace as modules."""

    def __init__(self, files: Mapping[str, Source]) -> None:
        """`files` by path."""
        self._files = files
        self._folders = {folder for path in files for folder in above(path)}
        self._by_folder: dict[str, list[str]] = {}
        self._by_name: dict[str, list[str]] = {}
        self._firsts: dict[str, list[str]] = {}
        for path in sorted(files):
            self._by_folder.setdefault(dirname(path), []).append(path)
            self._by_name.setdefault(basename(path), []).append(path)
            root = self._root(dirname(path))
            first = path[len(root) :].lstrip("/").split("/", 1)[0].removesuffix(".py")
            known = self._firsts.setdefault(first, [])
            if root not in known:
                known.append(root)
        self.definers = cache(self._definers)
        self._likely = cache(self._likely_roots)
        self._bindings = cache(self._bindings_of)
        self._located = cache(self._locate)

    def uses(self, path: str) -> Iterator[Use]:
        """The uses in a file, one for each import and module."""
        for each in self._files[path].imports:
            for module in self._targets(path, each):
                yield self._use(module, each)

    def named(self, path: str, dotted: str) -> Iterator[Definition]:
        """The modules, or names in them, that a dotted string in a file names."""
        parts = dotted.split(".")
        found = [self._deepest(root, parts) for root in self._roots(self._root(dirname(path)), parts[0])]
        for module, rest in sorted(found, key=lambda each: len(each[1]))[:1]:
            if not rest:
                yield Definition(module)
            elif not module.endswith("/"):
                yield from self._chain(module, rest)

    def inside(self, module: str) -> list[str]:
        """The files in the folder of a module, without the module itself."""
        folder = dirname(module)
        return [path for path in self._by_folder.get(folder, ()) if path != module]

    def ending_in(self, text: str) -> list[str]:
        """The files whose paths end in `text`."""
        name = basename(text)
        end = "/" + text.removeprefix("./")
        return [path for path in self._by_name.get(name, ()) if f"/{path}".endswith(end)]

    def below(self, folder: str) -> list[str]:
        """The files below a folder; none for the workspace itself."""
        return [path for path in self._files if path.startswith(f"{folder}/")] if folder else []

    def _use(self, module: str, each: Import) -> Use:
        definitions: set[Definition] = set()
        if each.names is None:
            top = self._top(module, each)
            for attributes in each.attributes:
                definitions.update(self._chain(top, attributes.split(".")))
            if not any(self._belongs(definition.module, module) for definition in definitions):
                definitions.add(Definition(module))
        for bound in each.names or ():
            definitions.update(self._bound(module, bound.name, bound.attributes))
        return Use(frozenset(definitions), self._packages(module))

    def _bound(self, module: str, name: str, attributes: tuple[str, ...]) -> Iterator[Definition]:
        if name == "*":
            yield Definition(module)
            return
        for definition in self.definers(module, name):
            if definition.name or not attributes:
                yield definition
            for chain in () if definition.name else attributes:
                yield from self._chain(definition.module, chain.split("."))

    def _chain(self, module: str, names: list[str]) -> Iterator[Definition]:
        """What a dotted name in a module stands for: the first part that is not a module."""
        here = [Definition(module)]
        for name in names:
            here = [each for definition in here for each in self.definers(definition.module, name)]
            yield from (definition for definition in here if definition.name)
            here = [definition for definition in here if not definition.name and definition.module != module]
        yield from here

    def _top(self, module: str, each: Import) -> str:
        """What an import binds: `a` for `import a.b`, and `a.b` for `import a.b as c`."""
        parts = each.module.split(".")
        if len(parts) < 2 or each.alias != parts[0]:
            return module
        folder = module.rstrip("/") if module.endswith("/") else module.removesuffix("/__init__.py").removesuffix(".py")
        for _ in parts[1:]:
            folder = dirname(folder)
        return self._package(folder)

    def _belongs(self, file: str, module: str) -> bool:
        return file == module or (module.endswith(("/", "/__init__.py")) and file.startswith(dirname(module) + "/"))

    def _targets(self, path: str, each: Import) -> tuple[str, ...]:
        if not each.level:
            return self._located(self._root(dirname(path)), each.module)
        folder = dirname(path)
        for _ in range(each.level - 1):
            folder = dirname(folder)
        module, rest = self._deepest(folder, each.module.split(".") if each.module else [])
        return () if rest else (module,)

    def _locate(self, root: str, dotted: str) -> tuple[str, ...]:
        """The modules that a dotted name may mean, seen from this root. For a name without a file, such as an extension
        module, the package around it."""
        parts = dotted.split(".")
        likely = self._likely(root)
        found, partly = dict[str, str](), list[str]()
        for each in self._roots(root, parts[0]):
            module, rest = self._deepest(each, parts)
            if not rest:
                found[each] = module
            elif module.endswith("/__init__.py") and len(rest) < len(parts):
                partly.append(module)
        nearest = next((module for each, module in found.items() if each in likely), None)
        return tuple(found.values() or partly[:1]) if nearest is None else (nearest,)

    def _roots(self, root: str, first: str) -> list[str]:
        """The folders that hold a module of that name: the likely ones for this root first, in order, then others."""
        likely = [each for each in self._likely(root) if self._holds(each, first)]
        others = [] if first in sys.stdlib_module_names else self._firsts.get(first, [])
        return likely + ([each for each in others if each not in likely] if len(others) <= UNLIKELY else [])

    def _likely_roots(self, root: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((root, *above(root), *LIKELY)))

    def _holds(self, root: str, first: str) -> bool:
        path = f"{root}/{first}".lstrip("/")
        if f"{path}.py" in self._files or f"{path}/__init__.py" in self._files:
            return True
        return path in self._folders and first not in sys.stdlib_module_names

    def _root(self, folder: str) -> str:
        """The folder around a file's top-level package."""
        while f"{folder}/__init__.py" in self._files:
            folder = dirname(folder)
        return folder

    def _deepest(self, folder: str, parts: list[str]) -> tuple[str, list[str]]:
        """The deepest module that nested names lead to, and the names left over."""
        for number, part in enumerate(parts):
            path = f"{folder}/{part}".lstrip("/")
            if path in self._folders:
                folder = path
            elif f"{path}.py" in self._files:
                return f"{path}.py", parts[number + 1 :]
            else:
                return self._package(folder), parts[number:]
        return self._package(folder), []

    def _package(self, folder: str) -> str:
        path = f"{folder}/__init__.py".lstrip("/")
        return path if path in self._files else f"{folder}/"

    def _packages(self, module: str) -> frozenset[str]:
        """What runs when a module is imported: itself and the packages around it."""
        packages = (f"{folder}/__init__.py" for folder in above(module) if folder)
        return frozenset(path for path in (module, *packages) if path in self._files)

    def _definers(self, module: str, name: str) -> frozenset[Definition]:
        """Where a name of a module is defined; the module itself if that is unclear."""
        found: set[Definition] = set()
        seen, pending = {(module, name)}, [(module, name)]
        while pending:
            here, wanted = pending.pop()
            for definition in self._next(here, wanted):
                if definition.name == "" or (definition.module == here and definition.name == wanted):
                    found.add(definition)
                elif (definition.module, definition.name) not in seen:
                    seen.add((definition.module, definition.name))
                    pending.append((definition.module, definition.name))
        return frozenset(found) or frozenset({Definition(module)})

    def _next(self, module: str, name: str) -> Iterator[Definition]:
        """Follow a name of a module one step, to where it is bound. If that is the module itself, it is defined
        there."""
        source = self._files.get(module)
        here = Definition(module, name)
        bound = [] if source is None else [each for each in self._bindings(module).get(name, ()) if each != here]
        yield from bound
        if source is not None and name in source.names:
            yield here
        elif not bound:
            inner, rest = self._deepest(dirname(module), [name])
            if module.endswith(("/", "/__init__.py")) and not rest:
                yield Definition(inner)
            elif source is not None:
                yield from self._starred(module, name)

    def _starred(self, module: str, name: str) -> Iterator[Definition]:
        for each in self._bindings(module).get("*", ()):
            source = self._files.get(each.module)
            if source is None:
                continue
            exported = source.exported
            if name in exported if exported is not None else not name.startswith("_"):
                yield Definition(each.module, name)

    def _bindings_of(self, path: str) -> dict[str, list[Definition]]:
        """What top-level imports bind, by name; under `*`, the modules whose names are all imported."""
        bindings: dict[str, list[Definition]] = {}
        for each in self._files[path].imports:
            for module in self._targets(path, each) if not each.lazy else ():
                if each.names is None:
                    bindings.setdefault(each.alias, []).append(Definition(self._top(module, each)))
                for bound in each.names or ():
                    definition = Definition(module) if bound.name == "*" else Definition(module, bound.name)
                    bindings.setdefault(bound.alias, []).append(definition)
        return bindings


def above(path: str) -> Iterator[str]:
    """The folders around a path, nearest first; the last is the workspace."""
    while path.strip("/"):
        path = dirname(path)
        yield path
