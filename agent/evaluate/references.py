"""How far a refactoring has come: the files that a change touched, and the places that still use names it took away.

RefactorBench tells its agent such a state of the work. A place is found by its name and not by its type, in Python
only: it may mean another thing of the same name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agent.evaluate.guard import text_of
from agent.parsing import python
from sandboxes import Change, Provider, Sandbox, Snapshot

FILES = 200
"""The most files with one of the names that are read."""
NAMES = 100
LOOK_S = 60.0
UBIQUITOUS = frozenset(name for kind in (str, bytes, int, float, list, dict, set, tuple, object) for name in dir(kind))
"""Attributes of built-in types: a place that uses one says nothing of a method of the same name."""

Gone = Mapping[str, frozenset[str]]
"""By the path of a changed source, the names that it defined and does not define any more."""


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """A place that uses a name that is not there any more."""

    path: str
    line: int
    name: str


@dataclass(frozen=True, slots=True)
class Tracked:
    """How far a change has come."""

    changed: tuple[str, ...]
    """The files that it touched."""
    sites: tuple[Site, ...]
    """The places that are still to be updated, by path and line."""


def tracked(provider: Provider, base: Snapshot, state: Snapshot) -> Tracked:
    """What a state changes of its base, and which references that leaves behind."""
    changes = [change for change in provider.changes(base, state) if not change.path.endswith(".pyc")]
    sources = [change for change in changes if change.path.endswith(".py")]
    with provider.at(base) as before, provider.at(state) as after:
        gone = {change.path: _gone(change, before, after) for change in sources}
        removed = frozenset(_module(change.path) for change in sources if change.kind == "removed")
        words = {name for names in gone.values() for name in names} | {name.rpartition(".")[2] for name in removed}
        texts = _using(after, sorted(words)[:NAMES])
    trees = {path: tree for path, text in texts.items() if (tree := python(text)) is not None}
    known = frozenset(name for tree in trees.values() for name in _defined(tree))
    sites = {site for path, tree in trees.items() for site in _sites(path, tree, gone, removed, known)}
    return Tracked(tuple(change.path for change in changes), tuple(sorted(sites)))


def _gone(change: Change, before: Sandbox, after: Sandbox) -> frozenset[str]:
    """The names that a source defines no more; none while it cannot be parsed."""
    old = python(text_of(before, change.path)) if change.kind != "added" else None
    new = python(text_of(after, change.path)) if change.kind != "removed" else ast.Module([], [])
    return _defined(old) - _defined(new) - UBIQUITOUS if old is not None and new is not None else frozenset()


def _defined(tree: ast.Module) -> frozenset[str]:
    """The functions, methods and classes of a module, and the variables at its top."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    named = [node.name for node in ast.walk(tree) if isinstance(node, kinds)]
    top = [statement for statement in tree.body if isinstance(statement, (ast.Assign, ast.AnnAssign))]
    return frozenset((*named, *(name for statement in top for name in _stored(statement))))


def _stored(tree: ast.AST) -> list[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return [name.id for name in names if isinstance(name.ctx, ast.Store)]


def _using(box: Sandbox, words: Sequence[str]) -> dict[str, str]:
    """The Python sources in which one of the words stands."""
    if not words:
        return {}
    pattern = "|".join(map(re.escape, words))
    found = box.exec(
        ["grep", "-rlwE", "--include=*.py", "--exclude-dir=.git", "--", pattern, "."], timeout_s=LOOK_S
    ).stdout
    paths = sorted(line.removeprefix("./") for line in found.decode(errors="surrogateescape").splitlines())
    return {path: text_of(box, path) for path in paths[:FILES]}


def _sites(path: str, tree: ast.Module, gone: Gone, removed: frozenset[str], known: frozenset[str]) -> Iterator[Site]:
    """The places of a source; `known`: what some source still defines, so that only an import from where it was is
    out of date."""
    nowhere = frozenset(name for names in gone.values() for name in names) - known
    imports = set(_imports(path, tree, gone, removed, nowhere))
    yield from imports
    lost = nowhere - (_bound(tree) - {site.name for site in imports})
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Constant(value=str(name)) if name in lost:
                yield Site(path, node.lineno, name)
            case ast.Attribute(attr=name) if name in nowhere:
                yield Site(path, node.end_lineno or node.lineno, name)


def _imports(
    path: str, tree: ast.Module, gone: Gone, removed: frozenset[str], nowhere: frozenset[str]
) -> Iterator[Site]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Site(path, node.lineno, each.name) for each in node.names if _is_one(each.name, removed))
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(path, node)
            away = {name for source, names in gone.items() if _is_one(module, {_module(source)}) for name in names}
            for each in node.names:
                if each.name in away | nowhere or _is_one(f"{module}.{each.name}", removed):
                    yield Site(path, node.lineno, each.name)


def _bound(tree: ast.Module) -> frozenset[str]:
    """The names that a source gives to something itself."""
    given = [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return frozenset(
        (*_stored(tree), *given, *(alias.asname or alias.name for node in imports for alias in node.names))
    )


def _module(path: str) -> str:
    """The dotted name of a source, from the root of the repository."""
    return ".".join(PurePosixPath(path).with_suffix("").parts).removesuffix(".__init__")


def _absolute(path: str, node: ast.ImportFrom) -> str:
    """The dotted name of the module that is imported from."""
    if not node.level:
        return node.module or ""
    package = PurePosixPath(path).parts[: -node.level]
    return ".".join((*package, *filter(None, (node.module,))))


def _is_one(name: str, modules: frozenset[str] | set[str]) -> bool:
    """Whether a module is imported by this name: its dotted name from some folder on."""
    return bool(name) and any(module == name or module.endswith(f".{name}") for module in modules)
