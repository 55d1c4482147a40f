"""Source: one Python file as bytes, its syntax tree, and the byte span of every node.

Invariant: a file is only changed by replacing byte spans, so everything outside of an edit stays as it was.
"""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from agent.actions import Edit
from agent.parsing import expression_tree

ATOM = 15
_Node = TypeVar("_Node", bound=cst.CSTNode)


class Unsupported(Exception):
    """The file cannot be edited: it is not UTF-8, does not compile, or has unusual line ends."""


@dataclass(frozen=True, slots=True)
class Change:
    """Replaces the bytes from `start` to `end` (exclusive) by a text."""

    start: int
    end: int
    text: str


class Source:
    """One file, parsed once. Offsets are in bytes, lines are 1-based."""

    def __init__(self, path: str, data: bytes) -> None:
        """Raises Unsupported if the file cannot be edited."""
        self.path = path
        self.data = data
        self.module = _parse(path, data)
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        self._spans = wrapper.resolve(ByteSpanPositionProvider)
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._children: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        self._full_spans: dict[cst.CSTNode, tuple[int, int]] = {}
        self._order: list[cst.CSTNode] = []
        self._subtree: dict[cst.CSTNode, tuple[int, int]] = {}
        self._by_kind: dict[type[cst.CSTNode], Sequence[Any]] = {}
        self._index(self.module)
        self._line_starts = [0, *(m.end() for m in re.finditer(rb"\n", data))]
        self.newline = "\r\n" if b"\r\n" in data else "\n"

    def _index(self, node: cst.CSTNode) -> None:
        """Record the place of a node and its descendants in the tree, once: asking libcst for children is slow."""
        begin = len(self._order)
        self._order.append(node)
        children = self._children[node] = list(node.children)
        for child in children:
            self._parents[child] = node
            self._index(child)
        self._subtree[node] = (begin, len(self._order))

    def walk(self, node: cst.CSTNode | None = None) -> Sequence[cst.CSTNode]:
        """The node (the module by default) and all below it, in the order of the text."""
        begin, end = self._subtree[node or self.module]
        return self._order[begin:end]

    def all(self, kind: type[_Node]) -> Sequence[_Node]:
        """Every node of a type, in the order of the text."""
        if kind not in self._by_kind:
            self._by_kind[kind] = [node for node in self._order if isinstance(node, kind)]
        return self._by_kind[kind]

    def children(self, node: cst.CSTNode) -> Sequence[cst.CSTNode]:
        """The node's children, in the order of the text."""
        return self._children[node]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds this one; None for the module."""
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around a node, innermost first."""
        parent = self._parents.get(node)
        while parent is not None:
            yield parent
            parent = self._parents.get(parent)

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """The offsets where a node begins and ends, its own parentheses included."""
        span = self._full_spans.get(node)
        if span is None:
            ends = (node.lpar[0], node.rpar[-1]) if isinstance(node, cst.BaseExpression) and node.lpar else (node, node)
            first, last = (self._spans[end] for end in ends)
            span = self._full_spans[node] = (first.start, last.start + last.length)
        return span

    def code(self, node: cst.CSTNode) -> str:
        """The node's text as written, its own parentheses included."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def line(self, offset: int) -> int:
        """The line that holds the byte at an offset."""
        return bisect.bisect_right(self._line_starts, offset)

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """The byte span of whole lines, the last line end included."""
        end = self._line_starts[last] if last < len(self._line_starts) else len(self.data)
        return self._line_starts[first - 1], end

    def indent(self, node: cst.CSTNode) -> str | None:
        """The white space before a statement; None if other text precedes it on its line."""
        start = self.span(node)[0]
        before = self.data[self.line_span(self.line(start), self.line(start))[0] : start].decode()
        return before if not before.strip(" \t\f") else None

    def statement_lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """The first and the last line of a statement, its body included."""
        start, end = self.span(node)
        return self.line(start), self.line(max(start, end - 1))

    def replace(self, node: cst.CSTNode, text: str) -> Change:
        """The change that replaces a node by an expression, in parentheses if they are needed."""
        start, end = self.span(node)
        needed = _needed_precedence(node, self._parents.get(node))
        multi_line = "\n" in text and bool(getattr(node, "lpar", ()))
        if precedence(text) < needed or (multi_line and not text.startswith("(")):
            text = f"({text})"
        return Change(start, end, text)


def apply(data: bytes, changes: Sequence[Change]) -> bytes:
    """The bytes after non-overlapping changes, given in any order."""
    for change in sorted(changes, key=lambda c: (c.start, c.end), reverse=True):
        data = data[: change.start] + change.text.encode() + data[change.end :]
    return data


def edits(source: Source, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """The changes as edits of whole lines, the last one first, so that every line number is right when it is used."""
    made: list[Edit] = []
    for first, last, group in reversed(_regions(source, changes)):
        start, end = source.line_span(first, last)
        old = source.data[start:end]
        new = apply(old, [replace(change, start=change.start - start, end=change.end - start) for change in group])
        made.append(Edit(source.path, old.decode(), new.decode(), first))
    return tuple(made)


def _regions(source: Source, changes: Sequence[Change]) -> list[tuple[int, int, list[Change]]]:
    """The changes by the ranges of lines that they touch; overlapping or adjacent ranges are joined."""
    regions: list[tuple[int, int, list[Change]]] = []
    end = max(0, len(source.data) - 1)
    for change in sorted(changes, key=lambda c: (c.start, c.end)):
        first = source.line(min(change.start, end))
        last = source.line(min(max(change.start, change.end - 1), end))
        if regions and first <= regions[-1][1] + 1:
            regions[-1] = (regions[-1][0], max(last, regions[-1][1]), [*regions[-1][2], change])
        else:
            regions.append((first, last, [change]))
    return regions


@lru_cache(maxsize=65536)
def precedence(text: str) -> int:
    """How tightly an expression binds, from 0 for a lambda or a bare tuple to `ATOM`."""
    try:
        tree = expression_tree(text.strip())
    except (SyntaxError, ValueError):
        return 0
    match tree:
        case ast.BoolOp(op=op):
            return 2 if isinstance(op, ast.Or) else 3
        case ast.UnaryOp(op=unary):
            return 4 if isinstance(unary, ast.Not) else 12
        case ast.BinOp(op=binary):
            return _BINARY[type(binary).__name__]
        case ast.Compare():
            return 5
        case ast.IfExp():
            return 1
        case ast.Await():
            return 14
        case ast.Tuple():
            return ATOM if text.lstrip().startswith("(") and text.rstrip().endswith(")") else 0
        case ast.Lambda() | ast.NamedExpr() | ast.Yield() | ast.YieldFrom() | ast.Starred():
            return 0
        case ast.Constant(value=int() | float()) if "." not in text:
            return 14
        case _:
            return ATOM


_BINARY = {
    "BitOr": 6,
    "BitXor": 7,
    "BitAnd": 8,
    **dict.fromkeys(("LShift", "RShift", "LeftShift", "RightShift"), 9),
    **dict.fromkeys(("Add", "Sub", "Subtract"), 10),
    **dict.fromkeys(("Mult", "Div", "FloorDiv", "Mod", "MatMult"), 11),
    **dict.fromkeys(("Multiply", "Divide", "FloorDivide", "Modulo", "MatrixMultiply"), 11),
    **dict.fromkeys(("Pow", "Power"), 13),
}
"""Precedence by the operators' class names in `ast` and in libcst."""


def _needed_precedence(node: cst.CSTNode, parent: cst.CSTNode | None) -> int:
    match parent:
        case cst.BinaryOperation(operator=op, right=right):
            return _BINARY[type(op).__name__] + (right is node)
        case cst.BooleanOperation(operator=op, right=right):
            return (2 if isinstance(op, cst.Or) else 3) + (right is node)
        case cst.Comparison() | cst.ComparisonTarget() | cst.StarredElement():
            return 6
        case cst.UnaryOperation(operator=op):
            return 4 if isinstance(op, cst.Not) else 12
        case cst.Attribute() | cst.Await():
            return ATOM
        case cst.Call(func=func) if func is node:
            return ATOM
        case cst.Subscript(value=value) if value is node:
            return ATOM
        case cst.IfExp(orelse=orelse):
            return 1 if orelse is node else 2
        case cst.CompIf() | cst.CompFor():
            return 2
        case cst.Element() | cst.Arg() | cst.Index() | cst.FormattedStringExpression() | cst.DictElement():
            return 1
        case cst.GeneratorExp() | cst.ListComp() | cst.SetComp() | cst.DictComp() | cst.Slice():
            return 1
        case _:
            return 0


def _parse(path: str, data: bytes) -> cst.Module:
    try:
        text = data.decode("utf-8")
        compile(data, path, "exec", dont_inherit=True)
        module = cst.parse_module(text)
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError, MemoryError, cst.ParserSyntaxError) as error:
        raise Unsupported(f"{path}: {error}") from error
    if text.startswith("\ufeff") or re.search(r"\r(?!\n)", text) or module.code != text:
        raise Unsupported(f"{path}: byte order mark or unusual line ends")
    return module
