"""Operators: another comparison, arithmetic, bitwise or boolean operator, or operands swapped or dropped."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.site import Site, Variant

_COMPARISONS = {
    "<": {"<=": 0.6, ">": 0.4, ">=": 0.15, "!=": 0.05},
    "<=": {"<": 0.6, ">=": 0.35, ">": 0.15, "==": 0.05},
    ">": {">=": 0.6, "<": 0.4, "<=": 0.15, "!=": 0.05},
    ">=": {">": 0.6, "<=": 0.35, "<": 0.15, "==": 0.05},
    "==": {"!=": 0.35, "<=": 0.25, ">=": 0.25, "in": 0.1, "is": 0.05},
    "!=": {"==": 0.35, ">": 0.25, "<": 0.25, "not in": 0.1, "is not": 0.05},
    "is": {"is not": 0.35, "==": 0.2},
    "is not": {"is": 0.35, "!=": 0.2},
    "in": {"not in": 0.35, "==": 0.1},
    "not in": {"in": 0.35, "!=": 0.1},
}
_OPERATORS = {
    "+": {"-": 0.25, "*": 0.1},
    "-": {"+": 0.25, "*": 0.05},
    "*": {"+": 0.2, "/": 0.2, "**": 0.15, "//": 0.1},
    "/": {"//": 0.4, "*": 0.2, "%": 0.05},
    "//": {"/": 0.35, "%": 0.2, "*": 0.1},
    "%": {"//": 0.25, "/": 0.1},
    "**": {"*": 0.25},
    "&": {"|": 0.4, "^": 0.3, "and": 0.05},
    "|": {"&": 0.4, "^": 0.3, "or": 0.05},
    "^": {"&": 0.45, "|": 0.35},
    "<<": {">>": 0.4},
    ">>": {"<<": 0.4},
    "and": {"or": 0.4},
    "or": {"and": 0.4},
}


def another_comparison(site: Site) -> Iterator[Variant]:
    """`a < b` to `a <= b`, `a > b`, ..."""
    if isinstance(site.node, cst.ComparisonTarget):
        operator = site.node.operator
        for text, weight in _COMPARISONS.get(site.code(operator), {}).items():
            yield site.token(operator, text, f"{site.code(operator)} -> {text}", weight)


def other_bound(site: Site) -> Iterator[Variant]:
    """Changes the operator and the number of a comparison at once: `n == 0` to `n <= 1`."""
    match site.node:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(comparator=cst.Integer(value=value)) as target]):
            old = site.code(target.operator)
            number = int(value, 0)
            for text in (text for text in ("<=", "<", ">", ">=") if text != old and old in _COMPARISONS):
                for step in (1, -1):
                    if number + step < 0 or (text in "<>" and step == (1 if text == ">" else -1)):
                        continue
                    new = f"{site.code(site.node.left)} {text} {number + step}"
                    yield site.variant(new, f"{old} {value} -> {text} {number + step}", 0.18 if old == "==" else 0.06)


def another_operator(site: Site) -> Iterator[Variant]:
    """`a + b` to `a - b`, `a and b` to `a or b`, `n ^= m` to `n &= m`, ..."""
    if isinstance(site.node, cst.BinaryOperation | cst.BooleanOperation | cst.AugAssign):
        operator = site.node.operator
        old = site.code(operator)
        equals = "=" if isinstance(site.node, cst.AugAssign) else ""
        if old.removesuffix("=") == "%" and _is_text(site):
            return
        for text, weight in _OPERATORS.get(old.removesuffix("=") if equals else old, {}).items():
            if not (equals and text.isalpha()):
                yield site.token(operator, text + equals, f"{old} -> {text}{equals}", weight)


def swap_operands(site: Site) -> Iterator[Variant]:
    """`a - b` to `b - a`; `+` only if it may join sequences."""
    match site.node:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            old = site.code(operator)
            if old in ("*", "&", "|", "^") or _is_text(site):
                return
            if old == "+" and "int" in site.kinds(left) | site.kinds(right):
                return
            between = site.source.data[site.source.span(left)[1] : site.source.span(right)[0]].decode()
            changes = (site.source.replace(left, site.code(right)), site.source.replace(right, site.code(left)))
            weight = 0.3 if "\n" not in between else 0.1
            yield Variant(changes, f"swap the operands of {old}", weight)


def drop_operand(site: Site) -> Iterator[Variant]:
    """`1 + f(x)` to `f(x)`, `a and b` to `b`."""
    match site.node:
        case cst.BinaryOperation(left=left, right=right) | cst.BooleanOperation(left=left, right=right):
            if _is_text(site):
                return
            for dropped, kept in ((left, right), (right, left)):
                weight = 0.3 if isinstance(dropped, cst.Integer) else 0.1
                yield site.variant(site.code(kept), f"drop {site.code(dropped)[:20]}", weight)


def _is_text(site: Site) -> bool:
    """Whether the operation is string formatting with `%`."""
    match site.node:
        case cst.BinaryOperation(left=cst.SimpleString() | cst.ConcatenatedString(), operator=cst.Modulo()):
            return True
        case _:
            return False
