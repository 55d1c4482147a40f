"""Scopes: which names are visible at a place in a file, their probable kinds, and where they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache

import libcst as cst

from agent.policy.mutate.kinds import kind_of, kinds_from_use
from agent.policy.mutate.source import Source

_SHARED_KINDS = {"int", "str", "list", "dict", "set", "bool"}


@dataclass(slots=True)
class Binding:
    """A name that code can refer to, as far as its file shows."""

    name: str
    offset: int
    """Where the name is first bound."""
    extent: tuple[int, int]
    """Where the name can be read."""
    kinds: set[str] = field(default_factory=set)
    values: list[str] = field(default_factory=list)
    """The expressions that are assigned to the name, as written."""
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    parameter: bool = False


@dataclass(slots=True)
class Scope:
    """A function, or the module, with the names bound in it."""

    node: cst.CSTNode
    extent: tuple[int, int]
    outer: Scope | None
    bindings: dict[str, Binding] = field(default_factory=dict)

    def visible(self, offset: int, begun: int) -> Iterator[Binding]:
        """The names that can be read at an offset in a statement that begins at `begun`, those of inner scopes first,
        within a scope the latest bound first. Names that the statement itself binds are left out, except for the
        variables of comprehensions."""
        names: set[str] = set()
        for scope in self.outward():
            for binding in sorted(scope.bindings.values(), key=lambda b: -b.offset):
                inside = binding.extent[0] <= offset < binding.extent[1]
                bound = binding.offset < begun or binding.extent != scope.extent or scope is not self
                if inside and bound and binding.name not in names:
                    names.add(binding.name)
                    yield binding

    def find(self, name: str) -> Binding | None:
        """The binding that a name refers to; None if the file does not bind it."""
        return next((scope.bindings[name] for scope in self.outward() if name in scope.bindings), None)

    def outward(self) -> Iterator[Scope]:
        """The scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @property
    def local(self) -> bool:
        """Whether this is a function, not the module."""
        return self.outer is not None


def scopes(source: Source) -> dict[cst.CSTNode, Scope]:
    """The scopes of the module and of every function in it."""
    root = Scope(source.module, (0, len(source.data) + 1), None)
    scope_of: dict[cst.CSTNode, Scope] = {source.module: root}
    owners: dict[cst.CSTNode, Scope] = {source.module: root}
    for node in source.walk()[1:]:
        owner = owners[source.parent(node) or source.module]
        if isinstance(node, cst.FunctionDef):
            owner = scope_of[node] = Scope(node, source.span(node), owner)
        owners[node] = owner
    for node, owner in owners.items():
        _bind(source, owner, node)
    for node, owner in owners.items():
        _read(source, owner, node)
    _share_kinds(source, owners)
    return scope_of


def _bind(source: Source, scope: Scope, node: cst.CSTNode) -> None:
    match node:
        case cst.FunctionDef(name=name) if scope.outer is not None:
            _add(source, scope.outer, name, scope.outer.extent).kinds.add("callable")
        case cst.Param(name=name, default=default):
            binding = _add(source, scope, name, scope.extent, default)
            binding.parameter = True
        case cst.Assign(targets=targets, value=value):
            for target in targets:
                _add_target(source, scope, target.target, value)
        case cst.AnnAssign(target=target, value=value) if value is not None:
            _add_target(source, scope, target, value)
        case cst.AugAssign(target=target):
            _add_target(source, scope, target, None)
        case cst.NamedExpr(target=target, value=value):
            _add_target(source, scope, target, value)
        case cst.For(target=target, iter=iterable) | cst.CompFor(target=target, iter=iterable):
            extent = scope.extent if isinstance(node, cst.For) else source.span(source.parent(node) or node)
            _add_loop_target(source, scope, target, iterable, extent)
        case cst.AsName(name=cst.Name() as name):
            if not isinstance(source.parent(node), cst.ImportAlias):
                _add(source, scope, name, scope.extent)


def _add(
    source: Source, scope: Scope, name: cst.Name, extent: tuple[int, int], value: cst.BaseExpression | None = None
) -> Binding:
    offset = source.span(name)[0]
    binding = scope.bindings.get(name.value)
    if binding is None:
        binding = scope.bindings[name.value] = Binding(name.value, offset, extent)
    elif extent[0] < binding.extent[0] or extent[1] > binding.extent[1]:
        binding.extent = (min(extent[0], binding.extent[0]), max(extent[1], binding.extent[1]))
    binding.writes.append(offset)
    if value is not None:
        binding.values.append(source.code(value))
        binding.kinds |= kind_of(value)
    return binding


def _add_target(source: Source, scope: Scope, target: cst.CSTNode, value: cst.BaseExpression | None) -> None:
    match target:
        case cst.Name():
            _add(source, scope, target, scope.extent, value)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            values = value.elements if isinstance(value, cst.Tuple) and len(value.elements) == len(elements) else None
            for position, element in enumerate(elements):
                _add_target(source, scope, element.value, values[position].value if values else None)
                if isinstance(element, cst.StarredElement) and isinstance(element.value, cst.Name):
                    scope.bindings[element.value.value].kinds.add("list")


def _add_loop_target(
    source: Source, scope: Scope, target: cst.CSTNode, iterable: cst.BaseExpression, extent: tuple[int, int]
) -> None:
    called = iterable.func.value if isinstance(iterable, cst.Call) and isinstance(iterable.func, cst.Name) else ""
    match target:
        case cst.Name():
            kinds = {"int"} if called == "range" else set()
            _add(source, scope, target, extent).kinds.update(kinds)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for position, element in enumerate(elements):
                if isinstance(element.value, cst.Name):
                    binding = _add(source, scope, element.value, extent)
                    binding.kinds.update({"int"} if called == "enumerate" and position == 0 else set())


def _read(source: Source, scope: Scope, node: cst.CSTNode) -> None:
    if not isinstance(node, cst.Name):
        return
    parent = source.parent(node)
    if (isinstance(parent, cst.Attribute) and parent.attr is node) or (
        isinstance(parent, cst.Arg) and parent.keyword is node
    ):
        return
    binding = scope.find(node.value)
    if binding is None:
        return
    offset = source.span(node)[0]
    if offset not in binding.writes or isinstance(parent, cst.AugAssign):
        binding.reads.append(offset)
    binding.kinds |= kinds_from_use(source, node, parent)


def _share_kinds(source: Source, owners: Mapping[cst.CSTNode, Scope]) -> None:
    """Give both sides of an assignment, a comparison or an argument the kinds of each other."""
    functions = {f.name.value: f for f in source.all(cst.FunctionDef)}
    pairs = [
        (one, other)
        for node, scope in owners.items()
        for one, other in _alike(node, scope, functions, owners)
        if one is not None and other is not None and one is not other
    ]
    for _ in range(3):
        for one, other in pairs:
            shared = (one.kinds | other.kinds) & _SHARED_KINDS
            one.kinds |= shared
            other.kinds |= shared


def _alike(
    node: cst.CSTNode, scope: Scope, functions: Mapping[str, cst.FunctionDef], owners: Mapping[cst.CSTNode, Scope]
) -> Iterator[tuple[Binding | None, Binding | None]]:
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=one)), *_], value=cst.Name(value=other)):
            yield scope.find(one), scope.find(other)
        case cst.Comparison(
            left=cst.Name(value=one),
            comparisons=[cst.ComparisonTarget(operator=operator, comparator=cst.Name(value=other))],
        ) if not isinstance(operator, cst.In | cst.NotIn | cst.Is | cst.IsNot):
            yield scope.find(one), scope.find(other)
        case cst.Call(func=cst.Name(value=name), args=args) if name in functions:
            inner = owners[functions[name]]
            for param, arg in zip(functions[name].params.params, args, strict=False):
                if isinstance(arg.value, cst.Name) and arg.keyword is None and not arg.star:
                    yield inner.bindings.get(param.name.value), scope.find(arg.value.value)


@lru_cache(maxsize=65536)
def likeness(one: str, other: str) -> float:
    """How similarly two names are spelled, in [0, 1]."""
    return SequenceMatcher(None, one, other).ratio()
