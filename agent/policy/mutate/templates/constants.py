"""Constants: numbers off by one, True for False, empty values, defaults, quantifiers of regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.site import Site, Variant


def another_number(site: Site) -> Iterator[Variant]:
    """`1` to `2`, `0`, `-1`."""
    if not isinstance(site.node, cst.Integer):
        return
    value = int(site.node.value, 0)
    if isinstance(site.parent, cst.UnaryOperation):
        yield site.variant(str(abs(value)), "drop the minus", 0.2, site.parent)
    factor = 0.3 if isinstance(site.parent, cst.Element | cst.DictElement | cst.Param) else 1.0
    for number, weight in ((value + 1, 0.35), (value - 1, 0.35), (0, 0.15), (1, 0.15), (-value, 0.08), (2, 0.05)):
        if number != value and (number >= 0 or value in (0, 1)):
            yield site.variant(str(number), f"{value} -> {number}", weight * factor)


def another_boolean(site: Site) -> Iterator[Variant]:
    """`True` to `False`."""
    match site.node:
        case cst.Name(value="True" | "False" as value):
            other = "False" if value == "True" else "True"
            yield site.variant(other, f"{value} -> {other}", 0.4)


def another_value(site: Site) -> Iterator[Variant]:
    """`[]` to `[[]]` or `[x]`, `None` to an empty value."""
    match site.node:
        case cst.List(elements=[]):
            yield site.variant("[[]]", "[] to [[]]", 0.3)
            for rank, binding in enumerate(site.values()):
                yield site.variant(f"[{binding.name}]", f"[] -> [{binding.name}]", 0.35 / (1 + rank))
            yield site.variant("None", "[] to None", 0.03)
        case cst.Name(value="None") if isinstance(site.parent, cst.Return | cst.Assign | cst.Arg | cst.Param):
            for rank, text in enumerate(("[]", "False", "0", '""', "{}", "True")):
                yield site.variant(text, f"None -> {text}", 0.12 / (1 + rank))
        case cst.SimpleString(value='""' | "''") if isinstance(site.parent, cst.Return | cst.Assign | cst.Arg):
            yield site.variant("None", "empty text to None", 0.1)
        case cst.Integer(value="0" | "1") if isinstance(site.parent, cst.Assign | cst.Return):
            yield site.variant("None", f"{site.node.value} -> None", 0.04)


def another_default(site: Site) -> Iterator[Variant]:
    """Another default of a parameter: `None`, `True`, `False`, `0`, `""`."""
    if isinstance(site.node, cst.Param) and site.node.default is not None:
        old = site.code(site.node.default)
        for text in ("None", "True", "False", "0", "1", '""', "()"):
            if text != old:
                yield site.variant(text, f"default {old[:20]} -> {text}", 0.05, site.node.default)


def returned(site: Site) -> Iterator[Variant]:
    """`return True` to `return n == 0`, `return not xs`; `return 0` to `return n`."""
    match site.node:
        case cst.Return(value=cst.Name(value="True" | "False") as value):
            yield from _returned_test(site, value)
        case cst.Return(value=cst.Name(value="None") | cst.Integer() | cst.SimpleString() as value):
            for rank, binding in enumerate(site.values()):
                yield site.variant(binding.name, f"return {binding.name}", 0.25 / (1 + rank), value)


def _returned_test(site: Site, value: cst.Name) -> Iterator[Variant]:
    rank = 0
    for binding in site.values():
        name, kinds = binding.name, binding.kinds
        tests = [f"not {name}", f"bool({name})"]
        if "int" in kinds:
            tests = [f"{name} == 0", f"{name} != 0", f"{name} > 0"]
        if binding.parameter and len(binding.writes) == 1 and not kinds & {"int", "bool"}:
            continue
        for text in tests:
            yield site.variant(text, f"{value.value} -> {text}", 0.35 / (1 + rank), value)
            rank += 1


def another_quantifier(site: Site) -> Iterator[Variant]:
    """In a string that looks like a regular expression: `+` to `*`, a `?` more or less, an anchor added."""
    if not isinstance(site.node, cst.SimpleString):
        return
    value = site.node.value
    if not re.search(r"[\])}.\\][*+?]|\(\?|\\[dswDSWb]|\[\^", value):
        return
    for place in re.finditer(r"(?<=[\])}\w.])[*+?]", value):
        for rank, text in enumerate(t for t in ("*", "+", "?", "") if t != place.group()):
            new = value[: place.start()] + text + value[place.end() :]
            yield site.variant(new, f"{place.group()} -> {text or 'nothing'} in a pattern", 0.15 / (1 + rank))
    quotes = 3 if value.endswith(('"""', "'''")) else 1
    body = len(value) - len(value.lstrip("rRbBuU")) + quotes
    tail = len(value) - quotes
    if not value[body:].startswith("^"):
        yield site.variant(f"{value[:body]}^{value[body:]}", "anchor a pattern at its start", 0.08)
    if not value[:tail].endswith(("$", "\\Z")):
        yield site.variant(f"{value[:tail]}${value[tail:]}", "anchor a pattern at its end", 0.08)
