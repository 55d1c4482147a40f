"""Mutation operators: ways to break a function, with one kind of defect each.

They are not the mirror image of `mutate`: some of what they remove (a guard, a statement, a keyword argument, a whole
operand) no template of `mutate` can restore. Each bug tells whether one of `mutate`'s edits repairs it
(`benchmarks.data.synthetic.mutants.repairable`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from agent.policy.mutate.block import is_docstring, whole_lines
from agent.policy.mutate.site import Site
from agent.policy.mutate.source import Change

Operator = Callable[[Site], Iterator[Change]]
"""Yields every way to break a node; nothing if the operator does not apply."""

_COMPARISONS = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "==": ("!=",),
    "!=": ("==",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
}
_ARITHMETIC = {
    "+": ("-",),
    "-": ("+",),
    "*": ("+", "//"),
    "/": ("//", "*"),
    "//": ("/",),
    "%": ("//",),
    "**": ("*",),
    "&": ("|",),
    "|": ("&",),
    "<<": (">>",),
    ">>": ("<<",),
    "and": ("or",),
    "or": ("and",),
}
_TWINS = ({"min", "max"}, {"any", "all"}, {"startswith", "endswith"}, {"lower", "upper"}, {"append", "extend"},
          {"find", "rfind"}, {"lstrip", "rstrip"}, {"floor", "ceil"}, {"ljust", "rjust"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Swap:
    """Replaces an operator by another one, by the texts of a table."""

    kinds: tuple[type[cst.CSTNode], ...]
    table: Mapping[str, tuple[str, ...]]

    def __call__(self, site: Site) -> Iterator[Change]:
        """Change the operator's token only."""
        if not isinstance(site.node, self.kinds):
            return
        operator = site.node.operator  # type: ignore[attr-defined]  # all of these kinds have one
        text = site.code(operator)
        for other in self.table.get(text.removesuffix("="), ()) if isinstance(site.node, cst.AugAssign) else ():
            yield Change(*site.source.span(operator), f"{other}=")
        for other in self.table.get(text, ()) if not isinstance(site.node, cst.AugAssign) else ():
            yield Change(*site.source.span(operator), other)


def condition(site: Site) -> Iterator[Change]:
    """`if a:` to `if not a:`, `not a` to `a`."""
    match site.node:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            yield site.source.replace(site.node, site.code(inner))
        case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) if not isinstance(
            test, cst.UnaryOperation
        ):
            if not (isinstance(test, cst.Name) and test.value == "True"):
                yield site.source.replace(test, f"not ({site.code(test)})")
        case _:
            return


def number(site: Site) -> Iterator[Change]:
    """Make an integer literal one larger or one smaller."""
    if isinstance(site.node, cst.Integer) and site.node.value.isdigit():
        value = int(site.node.value)
        yield from (site.source.replace(site.node, str(other)) for other in (value + 1, value - 1) if other >= 0)


def truth(site: Site) -> Iterator[Change]:
    """`True` to `False` and the reverse."""
    other = {"True": "False", "False": "True"}
    if isinstance(site.node, cst.Name) and site.node.value in other:
        yield site.source.replace(site.node, other[site.node.value])


def name(site: Site) -> Iterator[Change]:
    """Read another variable of the function instead: one of the two bound last."""
    if not isinstance(site.node, cst.Name) or not _is_read(site):
        return
    known = [binding.name for binding in site.values() if binding.name != site.node.value]
    binding = site.scope.find(site.node.value)
    if binding is not None and site.scope.local and site.node.value in site.scope.bindings:
        yield from (site.source.replace(site.node, other) for other in known[:2])


def twin(site: Site) -> Iterator[Change]:
    """`min` to `max`, `startswith` to `endswith`, ..."""
    match site.node:
        case cst.Call(func=cst.Name() as called) | cst.Call(func=cst.Attribute(attr=called)):
            for twins in _TWINS:
                if called.value in twins:
                    yield from (Change(*site.source.span(called), other) for other in sorted(twins - {called.value}))
        case _:
            return


def arguments(site: Site) -> Iterator[Change]:
    """Swap two positional arguments, or remove the last argument."""
    if not isinstance(site.node, cst.Call) or any(arg.star for arg in site.node.args):
        return
    positional = [arg.value for arg in site.node.args if arg.keyword is None]
    if len(positional) == 2 and site.code(positional[0]) != site.code(positional[1]):
        start, end = site.source.span(positional[0])[0], site.source.span(positional[1])[1]
        yield Change(start, end, f"{site.code(positional[1])}, {site.code(positional[0])}")
    if len(site.node.args) > 1:
        kept, last = site.node.args[-2:]
        yield Change(site.source.span(kept.value)[1], site.source.span(last.value)[1], "")


def bound(site: Site) -> Iterator[Change]:
    """Remove a bound of a slice."""
    if isinstance(site.node, cst.Slice):
        ends = (site.node.lower, site.node.upper)
        yield from (Change(*site.source.span(end), "") for end in ends if end is not None)


def operand(site: Site) -> Iterator[Change]:
    """Remove an operand."""
    if isinstance(site.node, cst.BooleanOperation | cst.BinaryOperation):
        yield from (site.source.replace(site.node, site.code(kept)) for kept in (site.node.left, site.node.right))


def call(site: Site) -> Iterator[Change]:
    """`f(x)` to `x`, `x.f()` to `x`."""
    match site.node:
        case cst.Call(func=cst.Name(), args=[cst.Arg(keyword=None, star="", value=inner)]):
            yield site.source.replace(site.node, site.code(inner))
        case cst.Call(func=cst.Attribute(value=inner), args=[]):
            yield site.source.replace(site.node, site.code(inner))
        case _:
            return


def statement(site: Site) -> Iterator[Change]:
    """Remove a simple statement, or replace it by `pass` if it is alone in its block."""
    node, block = site.node, site.parent
    if not isinstance(node, cst.SimpleStatementLine) or not isinstance(block, cst.IndentedBlock) or is_docstring(node):
        return
    if isinstance(node.body[0], cst.Pass | cst.Import | cst.ImportFrom | cst.Global | cst.Nonlocal):
        return
    yield _without(site) if len(block.body) > 1 else Change(*site.source.span(node), "pass")


def guard(site: Site) -> Iterator[Change]:
    """Remove an `if` whose body only returns, raises, continues or breaks."""
    match site.node, site.parent:
        case cst.If(
            orelse=None, body=cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[only])])
        ), cst.IndentedBlock(body=[_, _, *_]) if isinstance(only, cst.Return | cst.Raise | cst.Continue | cst.Break):
            yield _without(site)
        case _:
            return


def _without(site: Site) -> Change:
    return Change(*whole_lines(site, site.node), "")


def _is_read(site: Site) -> bool:
    """Whether the name is read for its value: not a target, keyword or attribute, and neither called nor declared."""
    match site.parent:
        case cst.Attribute(attr=attr):
            return attr is not site.node
        case cst.Arg(keyword=keyword):
            return keyword is not site.node
        case cst.Call(func=func):
            return func is not site.node
        case cst.AssignTarget() | cst.AugAssign() | cst.AnnAssign() | cst.Param() | cst.FunctionDef() | cst.ClassDef():
            return isinstance(site.parent, cst.AugAssign | cst.AnnAssign) and site.parent.value is site.node
        case cst.For(target=target) | cst.CompFor(target=target) | cst.NamedExpr(target=target):
            return target is not site.node
        case cst.Element() | cst.BinaryOperation() | cst.BooleanOperation() | cst.Comparison() | cst.ComparisonTarget():
            return True
        case cst.Return() | cst.Index() | cst.Assign() | cst.UnaryOperation() | cst.IfExp() | cst.If() | cst.While():
            return True
        case _:
            return False


OPERATORS: Mapping[str, Operator] = {
    "comparison": _Swap((cst.ComparisonTarget,), _COMPARISONS),
    "arithmetic": _Swap((cst.BinaryOperation, cst.BooleanOperation, cst.AugAssign), _ARITHMETIC),
    "condition": condition,
    "number": number,
    "truth": truth,
    "name": name,
    "twin": twin,
    "arguments": arguments,
    "bound": bound,
    "operand": operand,
    "call": call,
    "statement": statement,
    "guard": guard,
}
