"""Site and Variant: the input and the output of an edit template."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from agent.policy.mutate.kinds import kind_of
from agent.policy.mutate.scope import Binding, Scope
from agent.policy.mutate.source import Change, Source

_STATEMENT = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


@dataclass(frozen=True, slots=True)
class Variant:
    """One edit that a template makes at a site."""

    changes: tuple[Change, ...]
    label: str
    """The edit in a few words (`< to <=`)."""
    weight: float
    """How likely this edit is, given that the defect is at this site, in (0, 1]."""


@dataclass(frozen=True, slots=True)
class Site:
    """A node of the syntax tree, with its file and its scope."""

    source: Source
    node: cst.CSTNode
    scope: Scope

    @property
    def parent(self) -> cst.CSTNode | None:
        """The node that holds this one."""
        return self.source.parent(self.node)

    @property
    def offset(self) -> int:
        """Where the node begins."""
        return self.source.span(self.node)[0]

    def code(self, node: cst.CSTNode | None = None) -> str:
        """The text of a node, by default the site's own."""
        return self.source.code(node or self.node)

    def variant(self, text: str, label: str, weight: float, node: cst.CSTNode | None = None) -> Variant:
        """The variant that replaces a node, by default the site's own, by an expression."""
        return Variant((self.source.replace(node or self.node, text),), label, weight)

    def token(self, node: cst.CSTNode, text: str, label: str, weight: float) -> Variant:
        """The variant that replaces a node by a text as it is, without added parentheses."""
        return Variant((Change(*self.source.span(node), text),), label, weight)

    def values(self) -> Iterator[Binding]:
        """The variables of the enclosing functions that can be read here, the latest bound first; no functions."""
        holders = (n for n in (self.node, *self.source.ancestors(self.node)) if isinstance(n, _STATEMENT))
        statement = next(holders, self.source.module)
        return self._values(self.offset, self.source.span(statement)[0])

    def values_after(self) -> Iterator[Binding]:
        """The same for the place after the site's statement."""
        end = self.source.span(self.node)[1] - 1
        return self._values(end, end)

    def _values(self, offset: int, begun: int) -> Iterator[Binding]:
        local = {name for scope in self.scope.outward() if scope.local for name in scope.bindings}
        for binding in self.scope.visible(offset, begun):
            if binding.name in local and binding.kinds != {"callable"} and binding.name not in ("self", "cls"):
                yield binding

    def kinds(self, node: cst.CSTNode) -> set[str]:
        """The kinds that an expression seems to have; empty if nothing shows them."""
        if isinstance(node, cst.Name):
            binding = self.scope.find(node.value)
            if binding is not None:
                return binding.kinds
        return kind_of(node) if isinstance(node, cst.BaseExpression) else set()


Template = Callable[[Site], Iterator[Variant]]
"""Yields its variants of a site, the likeliest first; none if it does not apply."""
