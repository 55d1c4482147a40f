"""Wrapping: a call, a bound or brackets added around an expression, or removed."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.site import Site, Variant

_WRAPPERS = ("int", "abs", "str", "list", "len", "bool", "sorted", "set", "float", "reversed", "repr", "tuple", "round")


def wrap(site: Site) -> Iterator[Variant]:
    """`x` to `int(x)`, `abs(x)`, ..., and to `max(0, x)` or `max(y, x)` where `x` is assigned."""
    node, parent = site.node, site.parent
    if not isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.BinaryOperation):
        return
    yield from _bounded(site)
    base = _wrap_weight(site)
    kinds = site.kinds(node)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _WRAPPERS:
        base *= 0.4
    if not base or "callable" in kinds or site.code() in ("None", "True", "False", "self", "cls"):
        return
    if isinstance(parent, cst.Arg):
        yield from _as_text(site, parent)
    for rank, wrapper in enumerate(w for w in _WRAPPERS if _fits(w, kinds, parent)):
        label = f"{wrapper}() around {site.code()[:20]}"
        yield site.variant(f"{wrapper}({site.code()})", label, base / (1 + rank) ** 0.6)


def _as_text(site: Site, arg: cst.Arg) -> Iterator[Variant]:
    """`len(x)` to `len(str(x))`, `join(xs)` to `join(map(str, xs))`."""
    match site.source.parent(arg):
        case cst.Call(func=cst.Name(value="len")):
            yield site.variant(f"str({site.code()})", f"str() around {site.code()[:20]}", 0.12)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="join"))):
            yield site.variant(f"map(str, {site.code()})", "join texts", 0.2)


def _wrap_weight(site: Site) -> float:
    match site.parent:
        case cst.FormattedStringExpression():
            return 0.35
        case cst.For(iter=iterable) | cst.CompFor(iter=iterable) if iterable is site.node:
            return 0.12
        case cst.Arg() | cst.Return() | cst.Comparison() | cst.ComparisonTarget():
            return 0.08
        case cst.Assign() | cst.BinaryOperation() | cst.Element() | cst.DictElement() | cst.AugAssign():
            return 0.06
        case cst.DictComp() | cst.ListComp() | cst.GeneratorExp():
            return 0.06
        case cst.Index():
            return 0.03
        case _:
            return 0.0


def _fits(wrapper: str, kinds: set[str], parent: cst.CSTNode | None) -> bool:
    if isinstance(parent, cst.For | cst.CompFor):
        return wrapper in ("list", "sorted", "reversed", "set")
    if "int" in kinds and not kinds & {"list", "str", "dict", "set"}:
        return wrapper in ("int", "abs", "str", "float", "round")
    if kinds & {"list", "dict", "set", "sized"}:
        return wrapper in ("list", "len", "sorted", "set", "bool", "reversed", "tuple")
    if "str" in kinds:
        return wrapper in ("int", "len", "str", "repr", "float")
    return True


def _bounded(site: Site) -> Iterator[Variant]:
    match site.parent:
        case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value) if value is site.node:
            if "int" not in site.kinds(target) | site.kinds(value):
                return
            old, held = site.code(), site.code(target)
            again = 0.35 if any(isinstance(a, cst.For | cst.While) for a in site.source.ancestors(site.node)) else 0.08
            yield site.variant(f"max({held}, {old})", f"keep the larger {held}", again)
            yield site.variant(f"max(0, {old})", "not below 0", again * 0.9)
            yield site.variant(f"min({held}, {old})", f"keep the smaller {held}", again * 0.6)
        case cst.Element() | cst.Arg() | cst.Return() if isinstance(site.node, cst.Name):
            branch = next((a for a in site.source.ancestors(site.node) if isinstance(a, cst.If)), None)
            compared = site.source.walk(branch.test) if branch is not None else ()
            sides = [n.comparator for n in compared if isinstance(n, cst.ComparisonTarget)]
            for rank, side in enumerate(s for s in sides if isinstance(s, cst.Name | cst.Subscript | cst.Attribute)):
                for bound in ("max", "min"):
                    text = f"{bound}({site.code(side)}, {site.code()})"
                    yield site.variant(text, f"{bound} with {site.code(side)[:20]}", 0.08 / (1 + rank))


def unwrap(site: Site) -> Iterator[Variant]:
    """`f(x)` to `x`, `f(x).g()` to `f(x)`, `not x` to `x`, `-x` to `x`, `[x]` to `x`, `x.a` to `x`."""
    match site.node:
        case cst.Call(func=cst.Attribute(value=value)) if not isinstance(site.parent, cst.Expr):
            yield site.variant(site.code(value), f"drop .{site.node.func.attr.value}()", 0.12)  # type: ignore[attr-defined]  # matched above
            if len(site.node.args) == 1:
                yield site.variant(site.code(site.node.args[0].value), f"drop {site.code(site.node.func)[:20]}()", 0.05)
        case cst.Call(func=func, args=[cst.Arg(value=value, star="")]):
            yield site.variant(site.code(value), f"drop {site.code(func)[:20]}()", 0.2)
        case cst.UnaryOperation(operator=operator, expression=expression):
            yield site.variant(site.code(expression), f"drop {site.code(operator).strip()}", 0.25)
        case cst.List(elements=[cst.Element(value=value)]):
            yield site.variant(site.code(value), "drop the brackets", 0.1)
        case cst.Attribute(value=cst.Name() as value) if isinstance(site.parent, cst.Arg | cst.Comparison | cst.Return):
            yield site.variant(site.code(value), f"drop .{site.node.attr.value}", 0.08)


def one_tuple(site: Site) -> Iterator[Variant]:
    """`"%s" % x` to `"%s" % (x,)`."""
    match site.node:
        case cst.BinaryOperation(
            left=cst.SimpleString() | cst.ConcatenatedString(), operator=cst.Modulo(), right=right
        ):
            if not isinstance(right, cst.Tuple | cst.Dict | cst.Integer):
                yield site.variant(
                    f"({site.code(right)},)", f"{site.code(right)[:20]} -> ({site.code(right)[:20]},)", 0.5, right
                )


def prepend(site: Site) -> Iterator[Variant]:
    """`return [f(x) for x in xs]` to `return xs + [...]`, and the other way round."""
    match site.node:
        case cst.Return(value=cst.ListComp() | cst.List(elements=[_, *_]) as value):
            lists = [b for b in site.values() if not b.kinds & {"int", "str", "dict", "set", "bool"}]
            inside = {n.value for n in site.source.walk(value) if isinstance(n, cst.Name)}
            ranked = sorted(lists, key=lambda b: (b.name not in inside, not b.kinds & {"list", "sized"}))
            for rank, binding in enumerate(ranked[:4]):
                for text in (f"{binding.name} + {site.code(value)}", f"{site.code(value)} + {binding.name}"):
                    yield site.variant(text, f"add {binding.name} to what is returned", 0.2 / (1 + rank), value)
