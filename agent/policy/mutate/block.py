"""Blocks: the statements of a site by whole lines, and what is put beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from agent.policy.mutate.site import Site, Variant
from agent.policy.mutate.source import Change

__all__ = [
    "after",
    "before",
    "beside",
    "block_of",
    "in_loop",
    "is_docstring",
    "jumps",
    "outermost_function",
    "whole_lines",
]


def block_of(site: Site) -> Sequence[cst.CSTNode] | None:
    """The statements beside this one; None when the site is no statement of a block of whole lines."""
    parent = site.parent
    if not isinstance(parent, cst.IndentedBlock | cst.Module) or site.source.indent(site.node) is None:
        return None
    return parent.body


def whole_lines(site: Site, node: cst.CSTNode) -> tuple[int, int]:
    """The bytes of the lines that a statement stands on."""
    return site.source.line_span(*site.source.statement_lines(node))


def before(site: Site, code: str) -> Change:
    """The change that puts a statement in front of the site's."""
    start = whole_lines(site, site.node)[0]
    return Change(start, start, f"{site.source.indent(site.node)}{code}{site.source.newline}")


def after(site: Site, code: str) -> Change:
    """The change that puts a statement behind the site's."""
    end = whole_lines(site, site.node)[1]
    newline = site.source.newline
    indent = site.source.indent(site.node)
    if site.source.data[:end].endswith(b"\n"):
        return Change(end, end, f"{indent}{code}{newline}")
    return Change(end, end, f"{newline}{indent}{code}")


def beside(site: Site, code: str, label: str, weight: float) -> Iterator[Variant]:
    """A new statement in front of this one, and behind it when this is the last of its block."""
    block = block_of(site)
    if block is None or not site.scope.local or is_docstring(site.node):
        return
    yield Variant((before(site, code),), label, weight)
    if site.node is block[-1] and not jumps(site.node):
        yield Variant((after(site, code),), label, weight)


def outermost_function(site: Site) -> cst.CSTNode:
    """The function around all functions around the site; the module where there is none."""
    scope = site.scope
    while scope.outer is not None and scope.outer.local:
        scope = scope.outer
    return scope.node


def is_docstring(node: cst.CSTNode) -> bool:
    """Whether a statement is nothing but a text."""
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
        case _:
            return False


def jumps(node: cst.CSTNode) -> bool:
    """Whether nothing behind the statement can be reached through it."""
    match node:
        case cst.SimpleStatementLine(body=[*_, cst.Return() | cst.Raise() | cst.Break() | cst.Continue()]):
            return True
        case _:
            return False


def in_loop(site: Site) -> bool:
    """Whether `continue` may stand at the site."""
    for above in site.source.ancestors(site.node):
        if isinstance(above, cst.FunctionDef):
            return False
        if isinstance(above, cst.For | cst.While):
            return True
    return False
