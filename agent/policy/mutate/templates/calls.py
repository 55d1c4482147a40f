"""Calls: aimed at a relative of the function, arguments swapped, dropped, added."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.scope import likeness
from agent.policy.mutate.site import Site, Variant
from agent.policy.mutate.source import Change

__all__ = ["add_argument", "another_function", "drop_argument", "swap_arguments", "usual_argument"]

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


def usual_argument(site: Site) -> Iterator[Variant]:
    """An argument that well-known functions are often called with: `split(x)` to `split(x, 1)`, `d.pop(k)` to
    `d.pop(k, None)`, `sorted(x)` to `sorted(x, reverse=True)`."""
    if not isinstance(site.node, cst.Call):
        return
    func, args = site.node.func, site.node.args
    name = func.attr.value if isinstance(func, cst.Attribute) else site.code(func)
    if (name, len(args)) not in _USUAL or (args and _has_comma(args[-1])):
        return
    at = site.source.span(args[-1])[1] if args else site.source.span(site.node)[1] - 1
    for rank, text in enumerate(_USUAL[name, len(args)]):
        joint = ", " if args else ""
        yield Variant((_insert(at, joint + text),), f"pass {text} to {name}", 0.25 / (1 + rank))


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


def _has_comma(arg: cst.Arg) -> bool:
    return isinstance(arg.comma, cst.Comma)


def _insert(at: int, text: str) -> Change:
    return Change(at, at, text)


def _cut(start: int, end: int) -> Change:
    return Change(start, end, "")
