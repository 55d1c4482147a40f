"""Statements: deleted, moved or swapped, updates turned into assignments, branches reordered."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.block import block_of, in_loop, is_docstring, jumps, whole_lines
from agent.policy.mutate.site import Site, Variant
from agent.policy.mutate.source import Change

_UPDATES = ("append", "add", "appendleft", "push", "put", "insert", "update", "extend")


def delete(site: Site) -> Iterator[Variant]:
    """Deletes a statement; the only one of a block becomes `pass`."""
    block = block_of(site)
    if block is None or is_docstring(site.node) or isinstance(site.node, cst.FunctionDef | cst.ClassDef):
        return
    if len(block) == 1:
        yield site.token(site.node, "pass", "delete the statement", 0.05)
        return
    start, end = whole_lines(site, site.node)
    unended = end == len(site.source.data) and not site.source.data.endswith(b"\n")
    cut = Change(start - unended * len(site.source.newline), end, "")
    last = site.node.body[-1] if isinstance(site.node, cst.SimpleStatementLine) else None
    yield Variant((cut,), "delete the statement", 0.15 if isinstance(last, cst.Break | cst.Continue) else 0.08)
    if isinstance(site.node, cst.If) and site.node.orelse is None and isinstance(site.node.body, cst.IndentedBlock):
        yield Variant((_dedented(site, site.node.body, start, end),), "drop the condition", 0.06)


def _dedented(site: Site, body: cst.IndentedBlock, start: int, end: int) -> Change:
    first = whole_lines(site, body.body[0])[0]
    outer, inner = site.source.indent(site.node) or "", site.source.indent(body.body[0]) or ""
    lines = site.source.data[first:end].decode().split("\n")
    dedented = (outer + line.removeprefix(inner) if line.startswith(inner) else line for line in lines)
    return Change(start, end, "\n".join(dedented))


def swap_statements(site: Site) -> Iterator[Variant]:
    """Swaps a statement with the next one."""
    block = block_of(site)
    if block is None or is_docstring(site.node):
        return
    position = list(block).index(site.node)
    if position + 1 >= len(block):
        return
    after = block[position + 1]
    if jumps(site.node) or jumps(after) or isinstance(after, cst.FunctionDef | cst.ClassDef):
        return
    one, two = whole_lines(site, site.node), whole_lines(site, after)
    first, gap, second = (site.source.data[a:b].decode() for a, b in (one, (one[1], two[0]), two))
    if not second.endswith("\n"):
        second, first = second + site.source.newline, first.rstrip("\r\n")
    yield Variant((Change(one[0], two[1], second + gap + first),), "swap with the next statement", 0.12)


def move(site: Site) -> Iterator[Variant]:
    """Moves the last statement of a block behind the block, or a statement beside a block into it."""
    block = block_of(site)
    if block is None or not isinstance(site.node, cst.SimpleStatementLine):
        return
    start, end = whole_lines(site, site.node)
    text = site.source.data[start:end].decode()
    position = list(block).index(site.node)
    own_line = text.endswith("\n")

    def moved(at: int, indent: str, label: str, weight: float) -> Variant:
        inserted = Change(at, at, text.replace(site.source.indent(site.node) or "", indent, 1))
        deleted = Change(start, end, "")
        return Variant((inserted, deleted) if at <= start else (deleted, inserted), label, weight)

    holder = site.source.parent(site.parent) if site.parent is not None else None
    compound = isinstance(holder, cst.For | cst.While | cst.If | cst.Else | cst.With | cst.Try)
    if holder is not None and compound and own_line and position == len(block) - 1 > 0:
        statement = _statement_of(site, holder)
        outer, at = site.source.indent(statement), whole_lines(site, statement)[1]
        if outer is not None and site.source.data[:at].endswith(b"\n"):
            yield moved(at, outer, "move out of the block", 0.15)
    if position > 0:
        for body in _bodies(block[position - 1]):
            last = body.body[-1]
            inner, at = site.source.indent(last), whole_lines(site, last)[1]
            if inner is not None:
                yield moved(at, inner, "move into the block", 0.12)
    if position + 1 < len(block) and own_line:
        for body in _bodies(block[position + 1]):
            inner, at = site.source.indent(body.body[0]), whole_lines(site, body.body[0])[0]
            if inner is not None:
                yield moved(at, inner, "move into the block", 0.2)


def _statement_of(site: Site, node: cst.CSTNode) -> cst.CSTNode:
    """The whole statement that an `else` or `elif` belongs to."""
    while isinstance(node, cst.Else) or (isinstance(node, cst.If) and isinstance(site.source.parent(node), cst.If)):
        parent = site.source.parent(node)
        if parent is None:
            return node
        node = parent
    return node


def _bodies(node: cst.CSTNode) -> Iterator[cst.IndentedBlock]:
    if isinstance(node, cst.If | cst.For | cst.While | cst.With) and isinstance(node.body, cst.IndentedBlock):
        yield node.body
        if isinstance(node.orelse if not isinstance(node, cst.With) else None, cst.Else):
            body = node.orelse.body  # type: ignore[union-attr]  # an Else, as just seen
            if isinstance(body, cst.IndentedBlock):
                yield body


def assign_for_call(site: Site) -> Iterator[Variant]:
    """`x.update(y)` to `x = y`, `xs.append(y)` to `xs = y`."""
    match site.node:
        case cst.Expr(
            value=cst.Call(
                func=cst.Attribute(value=receiver, attr=cst.Name(value=method)), args=[cst.Arg(value=value)]
            ) as call
        ):
            if method in _UPDATES:
                text = f"{site.code(receiver)} = {site.code(value)}"
                yield site.token(call, text, f"assign for .{method}()", 0.15)
        case cst.AugAssign(target=target, value=value):
            text = f"{site.code(target)} = {site.code(value)}"
            yield site.token(site.node, text, "assign for an update", 0.12)
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute() | cst.Subscript() as target)], value=value
        ):
            if in_loop(site):
                text = f"{site.code(target)} += {site.code(value)}"
                yield site.token(site.node, text, "add up for an assignment", 0.06)


def reorder_branches(site: Site) -> Iterator[Variant]:
    """Swaps the conditions and bodies of an `if` and its `elif`, or the bodies of an `if` and its `else`."""
    match site.node:
        case cst.If(
            test=one, body=cst.IndentedBlock() as first, orelse=cst.If(test=two, body=cst.IndentedBlock() as second)
        ):
            pairs = ((one, two), (two, one), (first, second), (second, first))
            changes = tuple(Change(*site.source.span(a), site.code(b)) for a, b in pairs)
            yield Variant(changes, "swap the branches", 0.12)
        case cst.If(body=cst.IndentedBlock() as first, orelse=cst.Else(body=cst.IndentedBlock() as second)):
            changes = tuple(Change(*site.source.span(a), site.code(b)) for a, b in ((first, second), (second, first)))
            yield Variant(changes, "swap the bodies", 0.1)


def loop_for_branch(site: Site) -> Iterator[Variant]:
    """`if` to `while` and back."""
    match site.node:
        case cst.If(orelse=None) if not isinstance(site.parent, cst.If):
            old, new = "if", "while"
        case cst.While(orelse=None):
            old, new = "while", "if"
        case _:
            return
    start = site.offset
    yield Variant((Change(start, start + len(old), new),), f"{old} -> {new}", 0.12)
