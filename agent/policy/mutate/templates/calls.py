"""Calls: a related function instead, or arguments swapped, dropped or added."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.scope import likeness
from agent.policy.mutate.site import Site, Variant
from agent.policy.mutate.source import Change

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
"""Functions that are mostly right; another one is rarely meant."""
_ENDS = {"append": "appendleft", "appendleft": "append", "pop": "popleft", "popleft": "pop"}
_WELL_KNOWN = ("isinstance", "getattr", "hasattr", "setattr", "enumerate", "range", "print", "zip", "open")
"""Functions whose arguments are rarely in the wrong order."""
_USUAL = {
    ("split", 1): ("1",),
    ("rsplit", 1): ("1",),
    ("replace", 2): ("1",),
    ("sorted", 1): ("reverse=True",),
    ("sort", 0): ("reverse=True",),
    ("pop", 0): ("0",),
    ("pop", 1): ("None",),
    ("get", 1): ("0", "[]", '""', "{}"),
    ("next", 1): ("None",),
    ("getattr", 2): ("None",),
    ("enumerate", 1): ("1",),
    ("max", 1): ("default=0", "key=len"),
    ("min", 1): ("default=0", "key=len"),
    ("splitlines", 0): ("True",),
    ("round", 1): ("2",),
}


def another_function(site: Site) -> Iterator[Variant]:
    """Replaces a function or method by a related one, or by one of the module that takes as many arguments."""
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
                    yield site.token(name, other, f"{name.value} -> {other}", 0.2 if other in _COMMON else 0.5)
    if b"deque" in site.source.data and name.value in _ENDS:
        other = _ENDS[name.value]
        yield site.token(name, other, f"{name.value} -> {other}", 0.4)
    yield from _same_arity(site, name, len(site.node.args), isinstance(func, cst.Attribute))


def _same_arity(site: Site, name: cst.Name, arity: int, method: bool) -> Iterator[Variant]:
    likeness_of: dict[str, float] = {}
    for node in site.source.all(cst.FunctionDef):
        if node.name.value != name.value:
            count = len(node.params.params)
            inside_class = any(isinstance(a, cst.ClassDef) for a in site.source.ancestors(node))
            if inside_class == method and arity == count - inside_class and not node.name.value.startswith("__"):
                likeness_of[node.name.value] = likeness(node.name.value, name.value)
    for rank, (other, alike) in enumerate(sorted(likeness_of.items(), key=lambda item: -item[1])[:4]):
        yield site.token(name, other, f"{name.value} -> {other}", 0.15 * (0.3 + alike) / (1 + rank))


def swap_arguments(site: Site) -> Iterator[Variant]:
    """`f(a, b)` to `f(b, a)`, neighbours first."""
    if not isinstance(site.node, cst.Call) or site.code(site.node.func) in ("min", "max"):
        return
    well_known = site.code(site.node.func) in _WELL_KNOWN
    args = [a for a in site.node.args if a.keyword is None and not a.star]
    pairs = [(i, j) for i in range(len(args)) for j in range(i + 1, len(args))]
    for i, j in sorted(pairs, key=lambda p: p[1] - p[0])[:6]:
        one, two = args[i].value, args[j].value
        if site.code(one) != site.code(two):
            changes = (site.source.replace(one, site.code(two)), site.source.replace(two, site.code(one)))
            names = isinstance(one, cst.Name) + isinstance(two, cst.Name)
            weight = (0.15, 0.3, 0.45)[names] if j == i + 1 else 0.1
            yield Variant(changes, f"swap arguments {i + 1} and {j + 1}", weight * (0.2 if well_known else 1.0))


def drop_argument(site: Site) -> Iterator[Variant]:
    """Drops one argument of a call."""
    match site.node:
        case cst.Call(args=args) if len(args) > 1:
            for position in reversed(range(len(args))):
                if position == 0:
                    start, end = site.source.span(args[0])[0], site.source.span(args[1])[0]
                else:
                    start = site.source.span(args[position - 1].value)[1]
                    end = site.source.span(args[position].value)[1]
                label = f"drop argument {site.code(args[position].value)[:20]}"
                yield Variant((Change(start, end, ""),), label, 0.1)


def add_argument(site: Site) -> Iterator[Variant]:
    """Passes a parameter that the call leaves out, or, if the function is unknown, one more variable in scope."""
    if not isinstance(site.node, cst.Call):
        return
    args = site.node.args
    start, end = site.source.span(site.node)
    if not site.source.data[start:end].endswith(b")") or any(a.star for a in args):
        return
    keywords = {a.keyword.value for a in args if a.keyword is not None}
    joint = ", " if args and not _has_comma(args[-1]) else ""
    name = _called_name(site, site.node)
    names = [b.name for b in site.values()]
    parameters = _parameters(site, name)
    for rank, parameter in enumerate(p for p in parameters[len(args) - len(keywords) :] if p not in keywords):
        if parameter in names:
            yield _passing(site, site.node, f"{joint}{parameter}={parameter}", f"pass {parameter}", 0.3)
        else:
            for value in ("True", "False", "None"):
                argument = f"{parameter}={value}"
                yield _passing(site, site.node, joint + argument, f"pass {argument}", 0.05 / (1 + rank))
    if not parameters:
        for rank, variable in enumerate(n for n in names[:6] if n not in {site.code(a.value) for a in args}):
            yield _passing(site, site.node, joint + variable, f"pass {variable}", 0.04 / (1 + rank))


def usual_argument(site: Site) -> Iterator[Variant]:
    """Adds an argument that a well-known function often has: `split(x)` to `split(x, 1)`, `d.pop(k)` to
    `d.pop(k, None)`, `sorted(x)` to `sorted(x, reverse=True)`."""
    if not isinstance(site.node, cst.Call):
        return
    args, name = site.node.args, _called_name(site, site.node)
    if (name, len(args)) not in _USUAL or (args and _has_comma(args[-1])):
        return
    for rank, text in enumerate(_USUAL[name, len(args)]):
        joint = ", " if args else ""
        yield _passing(site, site.node, joint + text, f"pass {text} to {name}", 0.25 / (1 + rank))


def _called_name(site: Site, call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else site.code(call.func)


def _passing(site: Site, call: cst.Call, text: str, label: str, weight: float) -> Variant:
    """The variant that inserts a text after the last argument of a call."""
    at = site.source.span(call.args[-1])[1] if call.args else site.source.span(call)[1] - 1
    return Variant((Change(at, at, text),), label, weight)


def _parameters(site: Site, name: str) -> list[str]:
    """The parameters of the function or constructor of that name in this file; empty if there is none."""
    for node in site.source.all(cst.FunctionDef):
        if not name.startswith("__"):
            holder = next((a for a in site.source.ancestors(node) if isinstance(a, cst.ClassDef)), None)
            known_as = holder.name.value if holder is not None and node.name.value == "__init__" else node.name.value
            if known_as == name:
                params = [p.name.value for p in (*node.params.params, *node.params.kwonly_params)]
                return params[1:] if holder is not None else params
    return []


def _has_comma(arg: cst.Arg) -> bool:
    return isinstance(arg.comma, cst.Comma)
