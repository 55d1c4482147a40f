"""What a change to a file is about: the functions and classes it touches, and the words of the changed lines."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from keyword import kwlist

from agent.measure.diffs import common_ends
from agent.parsing import first_line, syntax_tree

WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]{3,}")
NAME = re.compile(r"[A-Za-z_]\w*")
COMMENT = re.compile(r"#.*$")
COMMON = frozenset({*kwlist, *dir(builtins), "self"})
FARTHEST = 3
"""How far the callers of a changed function are followed within its file."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change to one file."""

    names: frozenset[str] = frozenset()
    """The innermost functions, classes and methods it touches, qualified by class (`Queue.due`), and top-level
    variables."""
    users: Mapping[str, int] = field(default_factory=dict)
    """Functions and methods of the same file that use one of them by name, directly (1) or through private ones (2,
    3)."""
    touched: Mapping[str, int] | None = None
    """The file's top-level names that are changed (0) or use a changed one, directly (1) or through others (2 and
    more). None: any name may be affected, because import-time code changed or the file is not Python."""
    words: frozenset[str] = frozenset()
    """Identifiers of more than three characters in the changed code."""


@dataclass(frozen=True, slots=True)
class _Span:
    """A function, class or top-level variable in a file."""

    name: str
    first: int
    last: int
    """1-based."""
    is_class: bool


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a file before or after the change."""

    lines: list[str]
    spans: list[_Span] | None
    """Its definitions, outer before inner; None if it is not Python."""

    def used(self, span: _Span) -> frozenset[str]:
        """The names in a span, including its own."""
        return frozenset(NAME.findall("\n".join(self.lines[span.first - 1 : span.last])))


def file_change(path: str, before: str | None, after: str | None) -> FileChange:
    """Describe a change from one text to another. A text is None if the file does not exist."""
    texts = _text(path, before), _text(path, after)
    numbers = _lines(texts[0].lines, texts[1].lines)
    changed = [text.lines[number - 1] for text, found in zip(texts, numbers, strict=True) for number in found]
    words = frozenset(word for line in changed for word in WORD.findall(COMMENT.sub("", line))) - COMMON
    if any(text.spans is None for text in texts):
        return FileChange(words=words)
    names, at_import = set[str](), before is None or after is None
    for text, found in zip(texts, numbers, strict=True):
        inner, outside = _touched(text, found)
        names |= inner
        at_import |= outside
    users = _nearest(_users(text, names) for text in texts)
    touched = None if at_import else _nearest(_touched_tops(text, names) for text in texts)
    return FileChange(frozenset(names), users, touched, words)


def _text(path: str, text: str | None) -> _Text:
    return _Text((text or "").split("\n"), _spans(text or "") if path.endswith(".py") else None)


def _nearest(distances: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The smallest number of each name, sorted by name."""
    found: dict[str, int] = {}
    for each in distances:
        for name, number in each.items():
            found[name] = min(number, found.get(name, number))
    return dict(sorted(found.items()))


def _lines(old: list[str], new: list[str]) -> tuple[list[int], list[int]]:
    """The 1-based lines of each text that the other lacks."""
    start, end = common_ends(old, new)
    matcher = SequenceMatcher(None, old[start : len(old) - end], new[start : len(new) - end], autojunk=False)
    removed, added = list[int](), list[int]()
    for kind, first, last, other, other_last in matcher.get_opcodes():
        if kind != "equal":
            removed += range(start + first + 1, start + last + 1)
            added += range(start + other + 1, start + other_last + 1)
    return removed, added


def _spans(text: str) -> list[_Span] | None:
    """The definitions in a file, outer before inner; None if it is not Python."""
    try:
        return list(_defined(syntax_tree(text), ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defined(node: ast.AST, holder: str) -> Iterator[_Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            first = first_line(child)
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


def _touched(text: _Text, numbers: Collection[int]) -> tuple[set[str], bool]:
    """The innermost definitions around these lines, and whether a line lies in none."""
    names, outside = set[str](), False
    for number in numbers:
        around = [span for span in text.spans or () if span.first <= number <= span.last]
        if around:
            names.add(around[-1].name)
        elif COMMENT.sub("", text.lines[number - 1]).strip():
            outside = True
    return names, outside


def _users(text: _Text, names: Collection[str]) -> dict[str, int]:
    """The functions and methods that use these names, with their distance; only private ones are followed further."""
    used = {span.name: text.used(span) for span in text.spans or () if not span.is_class and span.name not in names}
    users: dict[str, int] = {}
    targets = set(names)
    for distance in range(1, FARTHEST + 1):
        last = {name.rsplit(".", 1)[-1] for name in targets}
        ends = {end for end in last if not end.startswith("__")}
        found = {name for name, words in used.items() if name not in users and not ends.isdisjoint(words)}
        users.update(dict.fromkeys(found, distance))
        targets = {name for name in found if name.rsplit(".", 1)[-1].startswith("_")}
    return users


def _touched_tops(text: _Text, names: Collection[str]) -> dict[str, int]:
    """The top-level names that contain these or use one that does, with their distance."""
    used = {span.name: text.used(span) for span in text.spans or () if "." not in span.name}
    touched: dict[str, int] = {}
    added, distance = {name.split(".", 1)[0] for name in names}, 0
    while added:
        touched.update(dict.fromkeys(added, distance))
        added = {name for name, words in used.items() if name not in touched and not added.isdisjoint(words)}
        distance += 1
    return touched
