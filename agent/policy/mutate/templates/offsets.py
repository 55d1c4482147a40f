"""Offsets: an index, bound or size that is off by one or by a variable, and slices of sequences."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.site import Site, Variant


def off_by_one(site: Site) -> Iterator[Variant]:
    """`x` to `x + 1` or `x - 1`."""
    if not isinstance(site.node, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
        return
    weight = _weight(site)
    if weight and site.code() not in ("None", "True", "False"):
        for sign in "+-":
            yield site.variant(f"{site.code()} {sign} 1", f"{site.code()[:20]} -> {site.code()[:20]} {sign} 1", weight)


def _weight(site: Site) -> float:
    """How often a number in this position is off by one; 0 if it is not a number."""
    node, parent = site.node, site.parent
    kinds = site.kinds(node)
    if kinds & {"list", "dict", "set", "str", "bool", "callable", "sized", "object"} and "int" not in kinds:
        return 0.0
    match parent:
        case cst.Index():
            return 0.25 if kinds & {"int", "index"} else 0.06
        case cst.Slice():
            return 0.3
        case cst.Arg():
            call = site.source.parent(parent)
            called = site.code(call.func) if isinstance(call, cst.Call) else ""
            if called == "range":
                return 0.4
            if called == "len" or not kinds & {"int", "index"}:
                return 0.0
            return 0.25
        case cst.Comparison() | cst.ComparisonTarget():
            return 0.12 if "int" in kinds else 0.03
        case cst.BinaryOperation():
            return 0.12 if "int" in kinds else 0.0
        case cst.Return() | cst.Assign() | cst.AugAssign():
            return 0.12 if "int" in kinds else 0.03
        case _:
            return 0.0


def off_by_name(site: Site) -> Iterator[Variant]:
    """`k` to `k - n` for a number `n` in scope, in a call or as an index."""
    if not isinstance(site.node, cst.Name) or not isinstance(site.parent, cst.Arg | cst.Index | cst.Slice | cst.Return):
        return
    if not site.kinds(site.node) & {"int", "index"}:
        return
    rank = 0
    for binding in site.values():
        if "int" in binding.kinds and binding.name != site.node.value:
            for sign in "-+":
                text = f"{site.node.value} {sign} {binding.name}"
                yield site.variant(text, f"{site.node.value} -> {text}", 0.15 / (1 + rank))
                rank += 1


def sliced(site: Site) -> Iterator[Variant]:
    """A sequence that is looped over or passed on: `xs` to `xs[1:]`, `xs[:-1]`, `xs[k:]`, and back."""
    node, parent = site.node, site.parent
    loops = isinstance(parent, cst.For | cst.CompFor) and parent.iter is node
    match node:
        case cst.Name() if loops or isinstance(parent, cst.Arg):
            if site.kinds(node) & {"int", "callable", "bool"}:
                return
            base = 0.25 if loops else 0.06
            counts = [b.name for b in site.values() if "int" in b.kinds]
            bounds = ("1:", *(f"{c}:" for c in counts), ":-1", "::-1", *(f":{c}" for c in counts))
            for rank, bound in enumerate(bounds):
                text = f"{node.value}[{bound}]"
                yield site.variant(text, f"{node.value} -> {text}", base / (1 + rank))
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Slice())]):
            yield site.variant(site.code(value), f"drop the slice of {site.code(value)[:20]}", 0.12)


def slice_like_sibling(site: Site) -> Iterator[Variant]:
    """`f(a[1:], b)` to `f(a[1:], b[1:])`, `d[i - 1, j]` to `d[i - 1, j - 1]`: treats siblings alike."""
    parts = _siblings(site.node)
    for part in parts:
        if not isinstance(part, cst.Name) or site.kinds(part) & {"callable"}:
            continue
        for other in parts:
            match other:
                case cst.Subscript(value=cst.Name(value=name), slice=[cst.SubscriptElement(slice=cst.Slice())]):
                    text = part.value + site.code(other).removeprefix(name)
                case cst.BinaryOperation(left=cst.Name(value=name), right=cst.Integer()):
                    text = part.value + site.code(other).removeprefix(name)
                case _:
                    continue
            if name != part.value:
                yield site.variant(text, f"{part.value} -> {text}", 0.4, part)


def _siblings(node: cst.CSTNode) -> list[cst.CSTNode]:
    match node:
        case cst.Call(args=args):
            return [arg.value for arg in args]
        case cst.Subscript(slice=elements):
            return [e.slice.value for e in elements if isinstance(e.slice, cst.Index)]
        case cst.Tuple(elements=elements):
            return [e.value for e in elements]
        case _:
            return []


def squared(site: Site) -> Iterator[Variant]:
    """`x` to `x ** 2` in arithmetic."""
    node = site.node
    if isinstance(node, cst.Name) and isinstance(site.parent, cst.BinaryOperation) and "int" in site.kinds(node):
        yield site.variant(f"{node.value} ** 2", f"square {node.value}", 0.06)
        yield site.variant(f"{node.value} * 2", f"double {node.value}", 0.03)
