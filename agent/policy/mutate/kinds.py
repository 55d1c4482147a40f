"""Kinds: what a value seems to be (`int`, `list`, `sized`, `optional`, ...), inferred from the syntax alone."""

from __future__ import annotations

import libcst as cst

from agent.policy.mutate.source import Source

_KIND_OF_METHOD = {
    **dict.fromkeys(("append", "extend", "insert", "sort", "reverse"), "list"),
    **dict.fromkeys(("add", "discard", "issubset", "issuperset", "union"), "set"),
    **dict.fromkeys(("items", "keys", "values", "get", "setdefault"), "dict"),
    **dict.fromkeys(("strip", "split", "startswith", "endswith", "lower", "upper", "join", "rfind", "format"), "str"),
}
_KIND_OF_CALL = {
    **dict.fromkeys(("len", "int", "ord", "round", "abs"), "int"),
    **dict.fromkeys(("list", "sorted", "reversed", "range"), "list"),
    **dict.fromkeys(("str", "repr", "chr", "format"), "str"),
    **dict.fromkeys(("set", "frozenset"), "set"),
    **dict.fromkeys(("dict", "defaultdict", "Counter"), "dict"),
    **dict.fromkeys(("isinstance", "bool", "any", "all", "hasattr"), "bool"),
}


def kind_of(value: cst.BaseExpression) -> set[str]:
    """The kinds that an expression's syntax shows; empty if it shows none."""
    match value:
        case cst.Integer() | cst.Float():
            return {"int"}
        case cst.List() | cst.ListComp():
            return {"list"}
        case cst.Dict() | cst.DictComp():
            return {"dict"}
        case cst.Set() | cst.SetComp():
            return {"set"}
        case cst.SimpleString() | cst.FormattedString() | cst.ConcatenatedString():
            return {"str"}
        case cst.Name(value="True" | "False") | cst.Comparison():
            return {"bool"}
        case cst.Name(value="None"):
            return {"optional"}
        case cst.Call(func=cst.Name(value=name)):
            return {_KIND_OF_CALL[name]} if name in _KIND_OF_CALL else set()
        case cst.BinaryOperation(left=left, right=right):
            return kind_of(left) | kind_of(right)
        case cst.UnaryOperation(operator=cst.Minus()):
            return {"int"}
        case _:
            return set()


def kinds_from_use(source: Source, node: cst.Name, parent: cst.CSTNode | None) -> set[str]:
    """The kinds that one use of a name shows."""
    match parent:
        case cst.Call(func=func) if func is node:
            return {"callable"}
        case cst.Attribute(value=value, attr=attr) if value is node:
            return {_KIND_OF_METHOD[attr.value]} if attr.value in _KIND_OF_METHOD else {"object"}
        case cst.Subscript(value=value) if value is node:
            return {"sized"}
        case cst.Index() | cst.Slice():
            return {"int"} if isinstance(parent, cst.Slice) else {"index"}
        case cst.For(iter=iterable) | cst.CompFor(iter=iterable) if iterable is node:
            return {"sized"}
        case cst.Arg():
            call = source.parent(parent)
            name = call.func.value if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) else ""
            return {"len": {"sized"}, "range": {"int"}, "enumerate": {"sized"}}.get(name, set())
        case cst.BinaryOperation(operator=cst.Subtract() | cst.Multiply() | cst.FloorDivide() | cst.Divide()):
            return {"int"}
        case cst.BinaryOperation(left=left, right=right):
            return {"int"} if isinstance(left, cst.Integer) or isinstance(right, cst.Integer) else set()
        case cst.Comparison() | cst.ComparisonTarget():
            whole = parent if isinstance(parent, cst.Comparison) else source.parent(parent)
            return _kinds_from_comparison(whole) if isinstance(whole, cst.Comparison) else set()
        case _:
            return set()


def _kinds_from_comparison(node: cst.Comparison) -> set[str]:
    kinds: set[str] = set()
    for side in (node.left, *(c.comparator for c in node.comparisons)):
        kinds |= {"optional"} if isinstance(side, cst.Name) and side.value == "None" else kind_of(side)
    return kinds & {"int", "str", "optional"}


def affinity(one: set[str], other: set[str]) -> float:
    """How well a value of one kind can replace one of another, in (0, 1]."""
    if not one or not other:
        return 0.5 if one or other else 0.7
    if one & other:
        return 1.0
    sized = {"sized", "list", "dict", "set", "str"}
    if ("sized" in one or "sized" in other) and one & sized and other & sized:
        return 0.8
    if {"int", "index"} <= one | other and one & {"int", "index"} and other & {"int", "index"}:
        return 0.8
    return 0.2
