"""What a change of a file is about: the functions and classes that it touches, and the words of the changed lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher

__all__ = ["Changed", "changed_of"]

WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{3,}")
NAME = re.compile(r"[A-Za-z_]\w*")
ROUNDS = 3
"""How far the users of a changed function are followed within its file."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Changed:
    """A change of one file."""

    names: frozenset[str] = frozenset()
    """The innermost functions, classes and methods that it touches, with the classes that they lie in: `Queue.due`; and
    variables at top level."""
    users: Mapping[str, int] = field(default_factory=dict)
    """Those of the same file that use one of them, or use one that does, ...: at how many removes, from 1."""
    words: frozenset[str] = frozenset()
    """The identifiers of more than three characters in the changed lines."""
    whole: bool = False
    """It touches what runs when the file is imported, or nothing can be told of it."""

    @property
    def touched(self) -> frozenset[str] | None:
        """The names at the top level of the file that are changed or use what is; None: it may be any."""
        if self.whole:
            return None
        return frozenset(name.split(".", 1)[0] for name in (*self.names, *self.users))


@dataclass(frozen=True, slots=True)
class _Span:
    """A function, a class, or a variable at top level, in a file."""

    name: str
    first: int
    last: int
    """1-based."""
    is_class: bool


def changed_of(path: str, before: str | None, after: str | None) -> Changed:
    """What a file's change from one text to the other is about; None: the file is not there."""
    gone, come = _lines(before or "", after or "")
    old, new = (before or "").split("\n"), (after or "").split("\n")
    lines = [old[number - 1] for number in gone] + [new[number - 1] for number in come]
    words = frozenset(word for line in lines for word in WORD.findall(line))
    if not path.endswith(".py"):
        return Changed(words=words, whole=True)
    names: set[str] = set()
    users: dict[str, int] = {}
    whole = before is None or after is None
    for text, numbers in ((before, gone), (after, come)):
        spans = _spans(text or "")
        if spans is None:
            whole = True
            continue
        touched, at_import = _touched(spans, numbers, (text or "").split("\n"))
        names |= touched
        whole |= at_import
        for name, removes in _users(spans, touched, (text or "").split("\n")).items():
            users[name] = min(removes, users.get(name, removes))
    return Changed(frozenset(names), {name: users[name] for name in sorted(users.keys() - names)}, words, whole)


def _lines(before: str, after: str) -> tuple[list[int], list[int]]:
    """The 1-based lines of each text that the other lacks."""
    old, new = before.split("\n"), after.split("\n")
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    middle = old[start : len(old) - end], new[start : len(new) - end]
    gone, come = list[int](), list[int]()
    for kind, first, last, other, other_last in SequenceMatcher(None, *middle, autojunk=False).get_opcodes():
        if kind != "equal":
            gone += range(start + first + 1, start + last + 1)
            come += range(start + other + 1, start + other_last + 1)
    return gone, come


def _spans(text: str) -> list[_Span] | None:
    """What a file defines, the outer before the inner; None where it is no Python."""
    try:
        return list(_defined(ast.parse(text), ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defined(node: ast.AST, holder: str) -> Iterator[_Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            is_class = isinstance(child, ast.ClassDef)
            yield _Span(holder + child.name, first, child.end_lineno or first, is_class)
            if is_class:
                yield from _defined(child, f"{holder}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign) and not holder:
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            names = [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            last = child.end_lineno or child.lineno
            yield from (_Span(name, child.lineno, last, is_class=False) for name in names)
        elif isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from _defined(child, holder)


def _touched(spans: list[_Span], numbers: Collection[int], lines: list[str]) -> tuple[set[str], bool]:
    """The innermost names that some lines lie in, and whether one of the lines lies in none."""
    names, at_import = set[str](), False
    for number in numbers:
        around = [span for span in spans if span.first <= number <= span.last]
        if around:
            names.add(around[-1].name)
        elif lines[number - 1].strip() and not lines[number - 1].lstrip().startswith("#"):
            at_import = True
    return names, at_import


def _users(spans: list[_Span], touched: Collection[str], lines: list[str]) -> dict[str, int]:
    """The names of a file that use these by name, at how many removes."""
    inner = [span for span in spans if not span.is_class or "." not in span.name]
    words = {span.name: frozenset(NAME.findall("\n".join(lines[span.first - 1 : span.last]))) for span in inner}
    users: dict[str, int] = {}
    wanted = set(touched)
    for removes in range(1, ROUNDS + 1):
        ends = {part for name in wanted for part in name.split(".") if not part.startswith("__")}
        wanted = {
            name
            for name, used in words.items()
            if name not in users and name not in touched and not ends.isdisjoint(used)
        }
        users.update(dict.fromkeys(wanted, removes))
    return users
