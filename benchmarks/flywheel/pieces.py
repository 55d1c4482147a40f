"""Pieces: one function of a file as a separate text, with its lines at the same numbers as in the file.

A piece is what `copied.py` replaces a function with. An edit outside of the body and the signature of one function (of
a decorator or a constant) has no piece."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent.actions import Edit
from agent.parsing import syntax_tree


@dataclass(frozen=True, slots=True)
class Spot:
    """The place of a function of a module or a method of its classes."""

    name: str
    """With its class: `Queue.due`."""
    first: int
    """The first line, 1-based, decorators included."""
    start: int
    """The line of its `def`."""
    last: int
    holders: tuple[tuple[int, str], ...]
    """The line and the name of each class around it."""


def spots(text: str) -> list[Spot]:
    """The functions that are nested only in classes, in order. Raises SyntaxError if the text is not Python."""
    return list(_spots(syntax_tree(text), ()))


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text after edits of whole lines, which are made from the last to the first."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda edit: -(edit.line or 0)):
        assert edit.line is not None
        place = edit.line - 1
        lines[place : place + edit.old.count("\n")] = edit.new.split("\n")[:-1]
    return "\n".join(lines)


def piece(path: str, known: Spot, spot: Spot, before: str, after: str) -> dict[str, Any] | None:
    """The piece of a function if two texts of a file differ in it alone; else None. `known` is its place in the running
    file, and `spot` its place in `before`."""
    old, new = before.split("\n"), after.split("\n")
    last = spot.last + len(new) - len(old)
    if last < spot.start or old[: spot.start - 1] != new[: spot.start - 1] or old[spot.last :] != new[last:]:
        return None
    lines = [""] * (spot.start - 1) + new[spot.start - 1 : last]
    for line, name in spot.holders:
        space = old[line - 1][: len(old[line - 1]) - len(old[line - 1].lstrip())]
        lines[line - 1] = f"{space}class {name}:"
    text = "\n".join(lines) + "\n"
    return {"path": path, "name": known.name, "first": known.first, "last": known.last, "text": text}


def _spots(node: ast.Module | ast.ClassDef, holders: tuple[tuple[int, str], ...]) -> Iterator[Spot]:
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            name = ".".join([*(name for _, name in holders), child.name])
            yield Spot(name, first, child.lineno, child.end_lineno or child.lineno, holders)
        elif isinstance(child, ast.ClassDef):
            yield from _spots(child, (*holders, (child.lineno, child.name)))
