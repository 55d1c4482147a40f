"""Functions: where bugs are made, and which functions are so much alike that they belong together.

Law: a family is never divided between splits, so that nothing learned on one side was copied from the other.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from agent.policy.edit.numbering import numbered, numbers, spelled
from benchmarks.data.synthetic.copies import NEAR, Copies

__all__ = ["Families", "Function", "functions", "normal", "unnamed"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function that stands in no other one, or a method of a class that does not."""

    path: str
    name: str
    """With its class: `Queue.due`."""
    first: int
    """Line, 1-based; decorators are part of it."""
    last: int
    text: str
    """Without comments, documentation and layout: what two copies have in common."""


def functions(path: str, data: bytes) -> Iterator[Function]:
    """The functions of a file, in their order. Raises SyntaxError where it is no Python."""
    for holder, node in _outermost(ast.parse(data), ""):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        yield Function(path, holder + node.name, first, node.end_lineno or first, normal(node))


def normal(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The function as `ast` writes it, without its documentation."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return "\n".join(ast.unparse(each) for each in (node.args, *body))


def unnamed(text: str) -> str:
    """A function as of `normal` with its variables numbered: what it has in common with itself under other names.

    Keywords of calls count as variables where they are called the same.
    """
    first, _, body = text.partition("\n")
    whole = f"def self({first}):\n{textwrap.indent(body or 'pass', ' ')}\n"
    return spelled(numbered(whole, numbers(whole)))


def _outermost(node: ast.AST, holder: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield holder, child
        elif isinstance(child, ast.ClassDef):
            yield from _outermost(child, f"{holder}{child.name}.")
        elif isinstance(child, ast.stmt):
            yield from _outermost(child, holder)


class Families:
    """Functions by likeness: two are of one family where a chain of near copies leads from one to the other."""

    def __init__(self, texts: Sequence[str], near: float = NEAR) -> None:
        """`texts` as of `normal` or `unnamed`; `near` is in (0, 1]."""
        self._parents = list(range(len(texts)))
        self._names = [sha256(text.encode()).hexdigest()[:12] for text in texts]
        copies = Copies(near=near)
        for number, text in enumerate(texts):
            for other in copies.meet(text):
                self._join(number, other)

    def of(self, number: int) -> str:
        """What names the family of a function, by its place among the texts: its first member's digest."""
        return self._names[self._root(number)]

    def _root(self, number: int) -> int:
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._parents[second] = first
