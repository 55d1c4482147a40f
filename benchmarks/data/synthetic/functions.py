"""The functions of a module, in which bugs are made, and their grouping into families of near copies.

Invariant: a family is never divided between splits, so that nothing learned from one split is a copy from another.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from agent.parsing import syntax_tree
from agent.policy.edit.numbering import as_python, numbered, numbers
from benchmarks.data.synthetic.copies import NEAR, Copies


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method that is not nested in another function."""

    path: str
    name: str
    """The name with its class, such as `Queue.due`."""
    first: int
    """The first line, 1-based, decorators included."""
    last: int
    text: str
    """The text from `normal`, which is the same for copies."""


def functions(path: str, data: bytes) -> Iterator[Function]:
    """The functions of a file, in order. Raises SyntaxError if the file is not Python."""
    for holder, node in _outermost(syntax_tree(data), ""):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        yield Function(path, holder + node.name, first, node.end_lineno or first, normal(node))


def normal(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The function as `ast` writes it, without its docstring, comments and layout."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return "\n".join(ast.unparse(part) for part in (node.args, *body))


def unnamed(text: str) -> str:
    """A function from `normal` with its variables replaced by numbers, so that a copy with other names is equal.

    Keywords of calls that have the name of a variable are numbered like it.
    """
    first, _, body = text.partition("\n")
    whole = f"def self({first}):\n{textwrap.indent(body or 'pass', ' ')}\n"
    return as_python(numbered(whole, numbers(whole)))


def _outermost(node: ast.AST, holder: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield holder, child
        elif isinstance(child, ast.ClassDef):
            yield from _outermost(child, f"{holder}{child.name}.")
        elif isinstance(child, ast.stmt):
            yield from _outermost(child, holder)


class Families:
    """Families of functions: two belong to one family if a chain of near copies leads from one to the other."""

    def __init__(self, texts: Sequence[str], near: float = NEAR) -> None:
        """`texts` come from `normal` or `unnamed`; `near` is in (0, 1]."""
        import networkx as nx

        alike, copies = nx.Graph(), Copies(near=near)
        for number, text in enumerate(texts):
            alike.add_node(number)
            alike.add_edges_from((number, other) for other in copies.meet(text))
        families = list(nx.connected_components(alike))
        self._first = {number: texts[min(family)] for family in families for number in family}

    def of(self, number: int) -> str:
        """The name of a function's family, which is its first member's digest. `number` is the index of the text."""
        return sha256(self._first[number].encode()).hexdigest()[:12]
