"""Conditions: negated, narrowed or widened by a check of a variable in scope, or a constant replaced."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.site import Site, Variant


def _is_condition(site: Site) -> bool:
    match site.parent:
        case (
            cst.If(test=test)
            | cst.While(test=test)
            | cst.IfExp(test=test)
            | cst.CompIf(test=test)
            | cst.Assert(test=test)
        ):
            return test is site.node
        case _:
            return False


def negated(site: Site) -> Iterator[Variant]:
    """`if x` to `if not x`."""
    if _is_condition(site) and not isinstance(site.node, cst.UnaryOperation | cst.Comparison):
        plain = isinstance(site.node, cst.Name | cst.Attribute | cst.Call | cst.Subscript)
        yield site.variant(f"not {site.code()}" if plain else f"not ({site.code()})", "negate the condition", 0.3)


def constant_condition(site: Site) -> Iterator[Variant]:
    """`while True` to `while xs`."""
    match site.node:
        case cst.Name(value="True" | "False") if _is_condition(site):
            bindings = [b for b in site.values() if b.kinds - {"callable"}]
            bindings.sort(key=lambda b: not b.kinds & {"list", "dict", "set", "sized"})
            for rank, binding in enumerate(bindings):
                for text, weight in ((binding.name, 0.6), (f"{binding.name} is not None", 0.15)):
                    yield site.variant(text, f"while {text}", weight / (1 + rank))


def extended(site: Site) -> Iterator[Variant]:
    """`if a` to `if a or not xs`, `if x is None or a`, `if a and x`."""
    if not _is_condition(site) or (isinstance(site.node, cst.Name) and site.node.value in ("True", "False")):
        return
    old = site.code()
    low = f"({old})" if isinstance(site.node, cst.BooleanOperation | cst.IfExp | cst.Lambda) else old
    for weight, check, first in _checks(site):
        for word, factor in (("or", 1.0), ("and", 0.8)):
            positive = _opposite(check) if word == "and" else check
            text = f"{positive} {word} {low}" if first else f"{low} {word} {positive}"
            yield site.variant(text, f"{word} {positive}", weight * factor)


def _checks(site: Site) -> Iterator[tuple[float, str, bool]]:
    """Weighted checks of what the condition uses (True: to be put first, as guards) and of other variables in scope."""
    inside = [n.value for n in site.source.walk(site.node) if isinstance(n, cst.Name)]
    guarded = [site.code(n.value) for n in site.source.walk(site.node) if isinstance(n, cst.Attribute | cst.Subscript)]
    for rank, receiver in enumerate(dict.fromkeys(guarded)):
        if receiver not in ("self", "cls"):
            yield 0.35 / (1 + rank), f"{receiver} is None", True
            yield 0.12 / (1 + rank), f"not {receiver}", True
    rank = 0
    for binding in site.values():
        name, kinds = binding.name, binding.kinds
        if name in guarded:
            continue
        if kinds & {"sized", "list", "dict", "set", "str"} or not kinds:
            yield (0.3 if name not in inside else 0.12) / (1 + rank), f"not {name}", False
        elif "optional" in kinds or "object" in kinds:
            yield 0.2 / (1 + rank), f"{name} is None", False
        elif "bool" in kinds:
            yield 0.15 / (1 + rank), f"not {name}", False
        elif "int" in kinds and name not in inside:
            yield 0.1 / (1 + rank), f"{name} == 0", False
        else:
            continue
        rank += 1


def _opposite(check: str) -> str:
    if check.startswith("not "):
        return check.removeprefix("not ")
    return check.replace(" is None", " is not None").replace(" == 0", " > 0")


def none_check(site: Site) -> Iterator[Variant]:
    """`if x` to `if x is not None` and back, also within `and` and `or`; `x or y` to `y if x is None else x`."""
    match site.node:
        case cst.Name() | cst.Attribute() if _is_tested(site) and site.code() not in ("True", "False"):
            yield site.variant(f"{site.code()} is not None", f"{site.code()[:20]} is not None", 0.2)
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.Name() | cst.Attribute() as inner) if _is_tested(
            site
        ):
            yield site.variant(f"{site.code(inner)} is None", f"{site.code(inner)[:20]} is None", 0.2)
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=cst.Name(value="None"))]
        ):
            text = site.code(left) if isinstance(operator, cst.IsNot) else f"not {site.code(left)}"
            yield site.variant(text, "truth for a None check", 0.12)
        case cst.BooleanOperation(left=cst.Name() | cst.Attribute() as left, operator=cst.Or(), right=right) if (
            not _is_tested(site)
        ):
            text = f"{site.code(right)} if {site.code(left)} is None else {site.code(left)}"
            yield site.variant(text, "None check for or", 0.2)


def _is_tested(site: Site) -> bool:
    """Whether only the truth value of the expression matters: it is a condition, or an operand of one."""
    node = site.node
    for parent in site.source.ancestors(node):
        negation = isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not)
        if not negation and not isinstance(parent, cst.BooleanOperation):
            break
        node = parent
    return _is_condition(Site(site.source, node, site.scope))
