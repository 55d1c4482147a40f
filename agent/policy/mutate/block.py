"""Blocks: the statements around a site, by whole lines, and new statements beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from agent.policy.mutate.site import Site, Variant
from agent.policy.mutate.source import Change


def block_of(site: Site) -> Sequence[cst.CSTNode] | None:
    """The statements of the site's block; None if the site is not a statement on whole lines of its own."""
    parent = site.parent
    if not isinstance(parent, cst.IndentedBlock | cst.Module) or site.source.indent(site.node) is None:
        return None
    return parent.body


def whole_lines(site: Site, node: cst.CSTNode) -> tuple[int, int]:
    """The byte span of a statement's lines."""
    return site.source.line_span(*site.source.statement_lines(node))


def before(site: Site, code: str) -> Change:
    """The change that inserts a statement before the site's."""
    start = whole_lines(site, site.node)[0]
    return Change(start, start, f"{site.source.indent(site.node)}{code}{site.source.newline}")


def after(site: Site, code: str) -> Change:
    """The change that inserts a statement after the site's."""
    end = whole_lines(site, site.node)[1]
    newline = site.source.newline
    indent = site.source.indent(site.node)
    if site.source.data[:end].endswith(b"\n"):
        return Change(end, end, f"{indent}{code}{newline}")
    return Change(end, end, f"{newline}{indent}{code}")


def beside(site: Site, code: str, label: str, weight: float) -> Iterator[Variant]:
    """The variants with a new statement before this one, and after it if this one is the last of its block."""
    block = block_of(site)
    if block is None or not site.scope.local or is_docstring(site.node):
        return
    yield Variant((before(site, code),), label, weight)
    if site.node is block[-1] and not jumps(site.node):
        yield Variant((after(site, code),), label, weight)


def outermost_function(site: Site) -> cst.CSTNode:
    """The outermost function around the site; the module if there is none."""
    functions = [scope.node for scope in site.scope.outward() if scope.local]
    return functions[-1] if functions else site.source.module


def is_docstring(node: cst.CSTNode) -> bool:
    """Whether a statement is only a string."""
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
        case _:
            return False


def jumps(node: cst.CSTNode) -> bool:
    """Whether control never passes from the statement to the next one."""
    last = node.body[-1] if isinstance(node, cst.SimpleStatementLine) else None
    return isinstance(last, cst.Return | cst.Raise | cst.Break | cst.Continue)


def in_loop(site: Site) -> bool:
    """Whether `continue` is allowed at the site."""
    around = (a for a in site.source.ancestors(site.node) if isinstance(a, cst.FunctionDef | cst.For | cst.While))
    return isinstance(next(around, None), cst.For | cst.While)
