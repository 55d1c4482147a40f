"""Names: another variable, attribute, index or assignment target, or a variable instead of an expression."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.kinds import affinity
from agent.policy.mutate.scope import Binding, likeness
from agent.policy.mutate.site import Site, Variant


def unused(binding: Binding) -> bool:
    """Whether a variable is assigned and never read: often it is the one that was meant."""
    return bool(binding.values) and not binding.reads and not binding.parameter and not binding.name.startswith("_")


def another_name(site: Site) -> Iterator[Variant]:
    """Replaces a variable by another of the same kind, preferably by one that is never read."""
    node, parent = site.node, site.parent
    if not isinstance(node, cst.Name) or not _is_variable(site, node):
        return
    kinds = site.kinds(node)
    near = {n.value for n in site.source.walk(parent) if isinstance(n, cst.Name)} if parent is not None else set()
    choices: list[tuple[float, str]] = []
    for rank, binding in enumerate(site.values()):
        if binding.name == node.value:
            continue
        weight = affinity(kinds, binding.kinds) * (0.7 + 0.6 * likeness(node.value, binding.name)) * 0.97**rank
        weight *= 3.0 if unused(binding) else 1.0
        choices.append((weight * (0.6 if binding.name in near else 1.0), binding.name))
    base = 0.08 if isinstance(parent, cst.Attribute) else 0.35
    for rank, (weight, name) in enumerate(sorted(choices, key=lambda c: -c[0])[:8]):
        yield site.variant(name, f"{node.value} -> {name}", min(1.0, base * weight / (1 + rank) ** 0.7))


def _is_variable(site: Site, node: cst.Name) -> bool:
    """Whether the name reads a variable: it is not a target, keyword, attribute, constant or called function."""
    match site.parent:
        case cst.Attribute(attr=attr) if attr is node:
            return False
        case cst.Arg(keyword=keyword) if keyword is node:
            return False
        case cst.Call() | cst.AssignTarget() | cst.Param() | cst.FunctionDef() | cst.NameItem() | cst.ClassDef():
            return False
        case cst.ImportAlias() | cst.AsName() | cst.Annotation() | cst.Decorator() | cst.ExceptHandler():
            return False
        case _:
            binding = site.scope.find(node.value)
            return binding is not None and (site.offset in binding.reads)


def variable_for_expression(site: Site) -> Iterator[Variant]:
    """Replaces an expression by a variable in scope, preferably an unread one that was assigned such a value."""
    node = site.node
    if not isinstance(node, cst.Call | cst.Subscript | cst.BinaryOperation | cst.Attribute):
        return
    if isinstance(site.parent, cst.AssignTarget | cst.Expr | cst.Decorator | cst.Annotation | cst.Del):
        return
    if isinstance(site.parent, cst.Call) and site.parent.func is node:
        return
    called = site.code(node.func) if isinstance(node, cst.Call) else ""
    inside = {n.value for n in site.source.walk(node) if isinstance(n, cst.Name)}
    choices: list[tuple[float, str]] = []
    for binding in site.values():
        weight = (0.1 if binding.name in inside else 0.2) * affinity(site.kinds(node), binding.kinds)
        if called and any(value.startswith(called + "(") for value in binding.values):
            weight = 0.6
        choices.append((min(1.0, weight * (4.0 if unused(binding) else 1.0)), binding.name))
    for rank, (weight, name) in enumerate(sorted(choices, key=lambda c: -c[0])[:8]):
        yield site.variant(name, f"{site.code()[:30]} -> {name}", weight / (1 + rank))


def another_attribute(site: Site) -> Iterator[Variant]:
    """`x.a` to `x.b` for an attribute that the file uses."""
    node = site.node
    if not isinstance(node, cst.Attribute) or (isinstance(site.parent, cst.Call) and site.parent.func is node):
        return
    weights: dict[str, float] = {}
    receiver = site.code(node.value)
    for other in site.source.all(cst.Attribute):
        name = other.attr.value
        if name != node.attr.value:
            called = isinstance(site.source.parent(other), cst.Call)
            weight = 0.5 if site.code(other.value) == receiver else 0.25
            weight = weight * (0.2 if called else 1.0) * (0.4 + likeness(name, node.attr.value))
            weights[name] = max(weights.get(name, 0.0), weight)
    for rank, (name, weight) in enumerate(sorted(weights.items(), key=lambda item: -item[1])[:6]):
        label = f".{node.attr.value} -> .{name}"
        yield site.token(node.attr, name, label, min(1.0, weight / (1 + rank)))


def another_target(site: Site) -> Iterator[Variant]:
    """Replaces the target of an assignment by an expression of its right side, or by another variable."""
    if not isinstance(site.node, cst.Assign | cst.AugAssign):
        return
    target = site.node.targets[0].target if isinstance(site.node, cst.Assign) else site.node.target
    old = site.code(target)
    texts = dict.fromkeys(
        site.code(n)
        for n in site.source.walk(site.node.value)
        if isinstance(n, cst.Subscript | cst.Attribute) and type(n) is type(target)
    )
    if isinstance(target, cst.Name):
        texts |= dict.fromkeys(b.name for b in site.values() if not b.parameter)
    for rank, text in enumerate([text for text in texts if text != old][:4]):
        yield site.variant(text, f"assign to {text[:30]}", 0.2 / (1 + rank), target)


def another_key(site: Site) -> Iterator[Variant]:
    """`d[0]` to `d[k]` for a number `k` in scope."""
    match site.node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer() as value))]):
            indices = (b for b in site.values() if b.kinds & {"int", "index"})
            for rank, binding in enumerate(indices):
                yield site.variant(binding.name, f"index {binding.name}", 0.06 / (1 + rank), value)


def swap_index(site: Site) -> Iterator[Variant]:
    """`d[j, k]` to `d[k, j]`, `rows[x][y]` to `rows[y][x]`, `(a, b)` to `(b, a)`."""
    match site.node:
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Index(value=one)), cst.SubscriptElement(slice=cst.Index(value=two))]
        ):
            weight = 0.35
        case cst.Subscript(
            value=cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=one))]),
            slice=[cst.SubscriptElement(slice=cst.Index(value=two))],
        ):
            weight = 0.25
        case cst.Tuple(elements=[cst.Element(value=one), cst.Element(value=two)]):
            weight = 0.2
        case _:
            return
    if site.code(one) != site.code(two):
        changes = (site.source.replace(one, site.code(two)), site.source.replace(two, site.code(one)))
        yield Variant(changes, f"swap {site.code(one)[:15]} and {site.code(two)[:15]}", weight)
