"""How far a refactoring has come: the files that a change touched, and the places that still use names it took away.

RefactorBench shows its agent such a summary. The uses of a name are found in the base state with rope; a use is left
over if the change has not touched its line. Uses in strings are found by their spelling. Python only.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from agent.evaluate.guard import text_of
from agent.parsing import python
from sandboxes import Change, Provider, Sandbox, Snapshot

FILES = 400
"""The most sources that are read: those with one of the names, and those of packages."""
NAMES = 20
"""The most names that are looked for."""
LOOK_S = 20.0
UBIQUITOUS = frozenset(name for kind in (str, bytes, int, float, list, dict, set, tuple, object) for name in dir(kind))
"""Attributes of built-in types: a place that may use one says nothing about a method of the same name."""

_MADE_BY_PROGRAMS = re.compile(r"^\.git/|\.pyc$")

log = logging.getLogger(__name__)

Name = tuple[str, str]
"""The path of a source and a qualified name in it, in the form that `agent.evaluate.occurrences` reads."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place that uses a name that no longer exists."""

    path: str
    line: int
    name: str
    """The name as written there, with the object that it is an attribute of."""
    sure: bool = True
    """Whether it is certainly this name, and not another of the same spelling."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """How far a change has come."""

    changed: tuple[str, ...]
    """The files that it touched."""
    sites: tuple[Site, ...]
    """The places that are still to be updated: first the sure ones, by path and line, then the others, those with the
    rarest spelling first."""


def tracked(provider: Provider, base: Snapshot, state: Snapshot) -> Tracked:
    """What a state changes in its base, and which outdated references it leaves behind."""
    changes = [each for each in provider.changes(base, state) if not _MADE_BY_PROGRAMS.search(each.path)]
    sources = [change for change in changes if change.path.endswith(".py")]
    with provider.at(base) as before, provider.at(state) as after:
        new = {change.path: text_of(after, change.path) for change in sources}
        names = sorted(name for change in sources for name in _gone(change, before, new[change.path]))[:NAMES]
        old = _using(before, names) if names else {}
    defined = {name for text in new.values() for name in _defined(python(text) or ast.Module([], []))}
    sites = {*_uses(old, new, names, defined), *_strings({**old, **new}, names, defined)} if names else set[Site]()
    return Tracked(tuple(change.path for change in changes), _ordered(sites))


def _word(name: Name) -> str:
    """The identifier of a name."""
    path, qualified = name
    return re.split(r"[.(]", qualified)[-1] or PurePosixPath(path.removesuffix("/__init__.py")).stem


def _gone(change: Change, before: Sandbox, text: str) -> Iterator[Name]:
    """The names that a source no longer defines; none while it cannot be parsed."""
    if change.kind == "added":
        return
    if change.kind == "removed":
        yield change.path, ""
        return
    old, new = python(text_of(before, change.path)), python(text)
    if old is not None and new is not None:
        gone = _defined(old) - _defined(new)
        for name in gone:
            if not any(name.startswith((f"{outer}.", f"{outer}(")) for outer in gone):
                yield change.path, name


def _defined(tree: ast.AST, prefix: str = "") -> frozenset[str]:
    """The qualified names of functions and their parameters, of classes, and of variables of the module and of
    classes."""
    names = set[str]()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            names |= {prefix + node.name, *(f"{prefix}{node.name}({each.arg}" for each in given)}
        elif isinstance(node, ast.ClassDef):
            names |= {prefix + node.name, *_defined(node, f"{prefix}{node.name}.")}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(prefix + node.id)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.If, ast.Try, ast.Tuple)):
            names |= _defined(node, prefix)
    return frozenset(names)


def _using(box: Sandbox, names: Sequence[Name]) -> dict[str, str]:
    """The Python sources that define the names, those that contain one, and those of packages, which re-export
    names."""
    pattern = "|".join(sorted({re.escape(_word(name)) for name in names}))
    found = box.exec(
        ["grep", "-rlwE", "--include=*.py", "--exclude-dir=.git", "--", pattern, "."], timeout_s=LOOK_S
    ).stdout
    packages = box.exec(["find", ".", "-name", "__init__.py", "-not", "-path", "*/.git/*"], timeout_s=LOOK_S).stdout
    lines = [sorted(each.decode(errors="replace").split("\n")) for each in (found, packages)]
    others = (line[2:] for each in lines for line in each if line.startswith("./") and ".." not in line.split("/"))
    paths = dict.fromkeys((*(path for path, _ in names), *others))
    return {path: text_of(box, path) for path in [*paths][:FILES]}


def _uses(old: Mapping[str, str], new: Mapping[str, str], names: Sequence[Name], defined: set[str]) -> Iterator[Site]:
    """The uses in the base state's sources, with their present lines. If a name has only moved, only the places that
    import it or name its module are outdated."""
    program = [sys.executable, "-P", str(Path(__file__).with_name("occurrences.py"))]
    with TemporaryDirectory() as folder:
        for path, text in old.items():
            Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, path).write_text(text, "utf-8")
        asked = json.dumps({"folder": folder, "names": names}).encode()
        try:
            done = subprocess.run(program, input=asked, capture_output=True, timeout=LOOK_S, check=False)
            printed = done.stdout
            if done.returncode:
                log.warning("the search for references failed: %s", done.stderr[-500:].decode(errors="replace"))
        except subprocess.TimeoutExpired as late:
            printed = late.stdout or b""
            log.warning("the search for references was stopped after %.0f s", LOOK_S)
    moves = {path: _moves(text, new[path]) for path, text in old.items() if path in new}
    for line in printed.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return
        number, path, at, written, sure = json.loads(line)
        now = moves[path].get(at) if path in moves else at
        _, qualified = names[number]
        if now is None or (not sure and _word(names[number]) in UBIQUITOUS):
            continue
        text = old[path].split("\n")[at - 1]
        if qualified not in defined or "." in qualified or "." in written or re.match(r"\s*(from|import)\b", text):
            yield Site(path, now, written, sure)


def _moves(old: str, new: str) -> dict[int, int]:
    """The present line number of each line that remains of a text, by its old number."""
    blocks = SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False).get_matching_blocks()
    return {block.a + n + 1: block.b + n + 1 for block in blocks for n in range(block.size)}


def _strings(texts: Mapping[str, str], names: Sequence[Name], defined: set[str]) -> Iterator[Site]:
    """The strings that equal a name, or contain it as an attribute or in a call: entries of `__all__`, targets of
    patches, generated code."""
    words = {_word(name) for name in names if name[1] not in defined and "(" not in name[1]} - UBIQUITOUS
    if not words:
        return
    either = "|".join(map(re.escape, sorted(words)))
    pattern = re.compile(rf"^(?:{either})$|[\w.]+\.(?:{either})\b|\b(?:{either})\(")
    for path, text in texts.items():
        tree = python(text)
        inside = (node for node in ast.walk(tree) if not isinstance(node, ast.Expr)) if tree is not None else ()
        for each in (child for node in inside for child in ast.iter_child_nodes(node)):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                for match in pattern.finditer(each.value):
                    yield Site(path, each.lineno, match[0].strip("("), sure=False)


def _ordered(sites: set[Site]) -> tuple[Site, ...]:
    written = Counter(site.name for site in sites)
    sure = {(site.path, site.line) for site in sites if site.sure}
    left = [site for site in sites if site.sure or (site.path, site.line) not in sure]

    def rank(site: Site) -> tuple[int, str, int, str]:
        return (0 if site.sure else written[site.name], site.path, site.line, site.name)

    return tuple(sorted(left, key=rank))
