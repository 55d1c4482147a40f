"""Calls: wrapped, unwrapped, aimed at a relative of the function, arguments swapped, dropped, added."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.scope import likeness
from agent.policy.mutate.site import Site, Variant
from agent.policy.mutate.source import Change

__all__ = [
    "add_argument",
    "another_function",
    "drop_argument",
    "one_tuple",
    "prepend",
    "swap_arguments",
    "unwrap",
    "wrap",
]

_KIN = (
    ("match", "fullmatch", "search"),
    ("any", "all"),
    ("min", "max"),
    ("append", "extend"),
    ("add", "update"),
    ("remove", "discard"),
    ("startswith", "endswith"),
    ("find", "rfind", "index"),
    ("split", "rsplit", "splitlines"),
    ("partition", "rpartition"),
    ("strip", "lstrip", "rstrip"),
    ("lower", "upper", "casefold"),
    ("isdigit", "isnumeric", "isdecimal", "isalnum"),
    ("issubset", "issuperset"),
    ("union", "intersection", "difference"),
    ("floor", "ceil", "round", "int"),
    ("sorted", "reversed", "list"),
    ("keys", "values", "items"),
    ("get", "setdefault"),
    ("type", "isinstance"),
    ("str", "repr"),
    ("encode", "decode"),
    ("findall", "finditer"),
)
_COMMON = ("append", "extend", "add", "update", "get", "setdefault", "list", "sorted", "repr", "isinstance")
"""Functions that are mostly right: another one is rarely meant."""
_ENDS = {"append": "appendleft", "appendleft": "append", "pop": "popleft", "popleft": "pop"}
_WELL_KNOWN = ("isinstance", "getattr", "hasattr", "setattr", "enumerate", "range", "print", "zip", "open")
"""Functions whose arguments are rarely in the wrong order."""
_WRAPPERS = ("int", "abs", "str", "list", "len", "bool", "sorted", "set", "float", "reversed", "repr", "tuple", "round")


def another_function(site: Site) -> Iterator[Variant]:
    """A function or method for its kin, or for a function of the module that takes as many arguments."""
    if not isinstance(site.node, cst.Call):
        return
    func = site.node.func
    name = func.attr if isinstance(func, cst.Attribute) else func
    if not isinstance(name, cst.Name):
        return
    for family in _KIN:
        if name.value in family:
            for other in family:
                if other != name.value:
                    yield site.token(name, other, f"{name.value} to {other}", 0.2 if other in _COMMON else 0.5)
    if b"deque" in site.source.data and name.value in _ENDS:
        other = _ENDS[name.value]
        yield site.token(name, other, f"{name.value} to {other}", 0.4)
    yield from _same_arity(site, name, len(site.node.args), isinstance(func, cst.Attribute))


def _same_arity(site: Site, name: cst.Name, arity: int, method: bool) -> Iterator[Variant]:
    found: dict[str, float] = {}
    for node in site.source.all(cst.FunctionDef):
        if node.name.value != name.value:
            count = len(node.params.params)
            inside_class = any(isinstance(a, cst.ClassDef) for a in site.source.ancestors(node))
            if inside_class == method and arity == count - inside_class and not node.name.value.startswith("__"):
                found[node.name.value] = likeness(node.name.value, name.value)
    for rank, (other, alike) in enumerate(sorted(found.items(), key=lambda item: -item[1])[:4]):
        yield site.token(name, other, f"{name.value} to {other}", 0.15 * (0.3 + alike) / (1 + rank))


def wrap(site: Site) -> Iterator[Variant]:
    """`x` to `int(x)`, `abs(x)`, ..., and to `max(0, x)` or `max(y, x)` where `x` is assigned."""
    node, parent = site.node, site.parent
    if not isinstance(node, cst.BaseExpression) or not isinstance(
        node, cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.BinaryOperation
    ):
        return
    yield from _bounded(site)
    base = _wrap_weight(site)
    kinds = site.kinds(node)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _WRAPPERS:
        base *= 0.4
    if not base or "callable" in kinds or site.code() in ("None", "True", "False", "self", "cls"):
        return
    fits = [w for w in _WRAPPERS if _fits(w, kinds, parent)]
    for rank, wrapper in enumerate(fits):
        yield site.variant(
            f"{wrapper}({site.code()})", f"{wrapper}() around {site.code()[:20]}", base / (1 + rank) ** 0.6
        )


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
            number = site.kinds(target) | site.kinds(value)
            if not number & {"int"}:
                return
            old, held = site.code(), site.code(target)
            again = 0.35 if _loops(site) else 0.08
            yield site.variant(f"max({held}, {old})", f"keep the larger {held}", again)
            yield site.variant(f"max(0, {old})", "not below 0", again * 0.9)
            yield site.variant(f"min({held}, {old})", f"keep the smaller {held}", again * 0.6)
        case _:
            return


def _loops(site: Site) -> bool:
    return any(isinstance(a, cst.For | cst.While) for a in site.source.ancestors(site.node))


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
        case _:
            return


def swap_arguments(site: Site) -> Iterator[Variant]:
    """`f(a, b)` to `f(b, a)`, neighbours first."""
    if not isinstance(site.node, cst.Call) or site.code(site.node.func) in ("min", "max"):
        return
    known = site.code(site.node.func) in _WELL_KNOWN
    args = [a for a in site.node.args if a.keyword is None and not a.star]
    pairs = [(i, j) for i in range(len(args)) for j in range(i + 1, len(args))]
    for i, j in sorted(pairs, key=lambda p: p[1] - p[0])[:6]:
        one, two = args[i].value, args[j].value
        if site.code(one) != site.code(two):
            changes = (site.source.replace(one, site.code(two)), site.source.replace(two, site.code(one)))
            names = isinstance(one, cst.Name) + isinstance(two, cst.Name)
            weight = (0.15, 0.3, 0.45)[names] if j == i + 1 else 0.1
            yield Variant(changes, f"swap arguments {i + 1} and {j + 1}", weight * (0.2 if known else 1.0))


def drop_argument(site: Site) -> Iterator[Variant]:
    """A call without one of its arguments."""
    match site.node:
        case cst.Call(args=args) if len(args) > 1:
            for position in reversed(range(len(args))):
                if position == 0:
                    start, end = site.source.span(args[0].value)[0], site.source.span(args[1])[0]
                    start = site.source.span(args[0])[0]
                else:
                    start = site.source.span(args[position - 1].value)[1]
                    end = site.source.span(args[position].value)[1]
                label = f"drop argument {site.code(args[position].value)[:20]}"
                yield Variant((_cut(start, end),), label, 0.1)
        case _:
            return


def add_argument(site: Site) -> Iterator[Variant]:
    """A parameter of the called function that the call leaves out, from a variable in scope; or one variable more."""
    if not isinstance(site.node, cst.Call):
        return
    args = site.node.args
    start, end = site.source.span(site.node)
    if not site.source.data[start:end].endswith(b")") or any(a.star for a in args):
        return
    given = {a.keyword.value for a in args if a.keyword is not None}
    joint = ", " if args and not _has_comma(args[-1]) else ""
    at = site.source.span(args[-1])[1] if args else end - 1
    name = site.node.func.attr.value if isinstance(site.node.func, cst.Attribute) else site.code(site.node.func)
    names = [b.name for b in site.values()]
    called = _parameters(site, name)
    for rank, parameter in enumerate(p for p in called[len(args) - len(given) :] if p not in given):
        if parameter in names:
            yield Variant((_insert(at, f"{joint}{parameter}={parameter}"),), f"pass {parameter}", 0.3)
        else:
            for value in ("True", "False", "None"):
                yield Variant(
                    (_insert(at, f"{joint}{parameter}={value}"),), f"pass {parameter}={value}", 0.05 / (1 + rank)
                )
    if not called:
        for rank, one in enumerate(n for n in names[:6] if n not in {site.code(a.value) for a in args}):
            yield Variant((_insert(at, f"{joint}{one}"),), f"pass {one}", 0.04 / (1 + rank))


def _parameters(site: Site, name: str) -> list[str]:
    """The parameters of the function or constructor of that name in this file."""
    for node in site.source.all(cst.FunctionDef):
        if not name.startswith("__"):
            holder = next((a for a in site.source.ancestors(node) if isinstance(a, cst.ClassDef)), None)
            known_as = holder.name.value if holder is not None and node.name.value == "__init__" else node.name.value
            if known_as == name:
                params = [p.name.value for p in (*node.params.params, *node.params.kwonly_params)]
                return params[1:] if holder is not None else params
    return []


def one_tuple(site: Site) -> Iterator[Variant]:
    """`"%s" % x` to `"%s" % (x,)`."""
    match site.node:
        case cst.BinaryOperation(operator=cst.Modulo(), right=right) if not isinstance(
            right, cst.Tuple | cst.Dict | cst.Integer
        ):
            if isinstance(site.node.left, cst.SimpleString | cst.ConcatenatedString):
                yield site.variant(f"({site.code(right)},)", f"{site.code(right)[:20]} to a 1-tuple", 0.5, right)
        case _:
            return


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
        case _:
            return


def _has_comma(arg: cst.Arg) -> bool:
    return isinstance(arg.comma, cst.Comma)


def _insert(at: int, text: str) -> Change:
    return Change(at, at, text)


def _cut(start: int, end: int) -> Change:
    return Change(start, end, "")
