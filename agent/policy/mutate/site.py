"""Site and Variant: what an edit template is shown, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from agent.policy.mutate.kinds import kind_of
from agent.policy.mutate.scope import Binding, Scope
from agent.policy.mutate.source import Change, Source

__all__ = ["Site", "Template", "Variant"]

_STATEMENT = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


@dataclass(frozen=True, slots=True)
class Variant:
    """One edit that a template makes of a site."""

    changes: tuple[Change, ...]
    label: str
    """What is done, in a few words (`< to <=`)."""
    weight: float
    """In (0, 1]: how likely this is, given that the defect is at this site."""


@dataclass(frozen=True, slots=True)
class Site:
    """A node of the syntax tree with what can be known of its surroundings."""

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
        """The text of a node, of the site's own by default."""
        return self.source.code(node or self.node)

    def variant(self, text: str, label: str, weight: float, node: cst.CSTNode | None = None) -> Variant:
        """The variant that puts an expression in a node's place, of the site's own by default."""
        return Variant((self.source.replace(node or self.node, text),), label, weight)

    def token(self, node: cst.CSTNode, text: str, label: str, weight: float) -> Variant:
        """The variant that puts another operator or name in a token's place."""
        start, end = self.source.span(node)
        return Variant((Change(start, end, text),), label, weight)

    def values(self) -> Iterator[Binding]:
        """Variables of the enclosing functions that can be read here, the latest bound first: no functions, nothing
        global."""
        holders = (n for n in (self.node, *self.source.ancestors(self.node)) if isinstance(n, _STATEMENT))
        statement = next(holders, self.source.module)
        return self._values(self.offset, self.source.span(statement)[0])

    def values_after(self) -> Iterator[Binding]:
        """The same for the place behind the site's statement."""
        end = self.source.span(self.node)[1] - 1
        return self._values(end, end)

    def _values(self, offset: int, begun: int) -> Iterator[Binding]:
        local: set[str] = set()
        scope: Scope | None = self.scope
        while scope is not None and scope.local:
            local |= scope.bindings.keys()
            scope = scope.outer
        for binding in self.scope.visible(offset, begun):
            if binding.name in local and binding.kinds != {"callable"} and binding.name not in ("self", "cls"):
                yield binding

    def kinds(self, node: cst.CSTNode) -> set[str]:
        """The kinds that an expression seems to have; empty when nothing tells."""
        if isinstance(node, cst.Name):
            binding = self.scope.find(node.value)
            if binding is not None:
                return binding.kinds
        return kind_of(node) if isinstance(node, cst.BaseExpression) else set()


Template = Callable[[Site], Iterator[Variant]]
"""Yields its variants of a site, the likeliest first; none when it does not apply."""
