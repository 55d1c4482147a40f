"""Insertions: a call as the function has elsewhere, an assignment that a loop lacks, a jump or a guard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from agent.policy.mutate.block import after, before, beside, block_of, in_loop, is_docstring, jumps, outermost_function
from agent.policy.mutate.kinds import affinity
from agent.policy.mutate.scope import Binding
from agent.policy.mutate.site import Site, Variant

_ADDING = ("append", "add", "appendleft", "push", "put", "insert")


def insert_call(site: Site) -> Iterator[Variant]:
    """`seen.add(node)`: adds a variable to one of the function's collections."""
    if block_of(site) is None:
        return
    visible = {b.name: b for b in site.values_after()}
    choices: list[tuple[float, str]] = []
    for receiver, method, kinds in _additions(site):
        if receiver not in visible:
            continue
        for rank, binding in enumerate(b for b in _loop_variables_first(site, visible.values()) if b.name != receiver):
            weight = (affinity(kinds, binding.kinds) if kinds else 0.6) * 0.9**rank
            choices.append((weight, f"{receiver}.{method}({binding.name})"))
    near = _neighbours(site)
    inserted: set[str] = set()
    for rank, (weight, code) in enumerate(sorted(choices, key=lambda c: -c[0])):
        if code in near or code in inserted or len(inserted) >= 8:
            continue
        inserted.add(code)
        yield from beside(site, code, f"insert {code}", 0.45 * weight / (1 + rank) ** 0.7)


def _additions(site: Site) -> Iterator[tuple[str, str, set[str]]]:
    """The function's collections, with the method that adds to them and the kinds of the values that are added: those
    that it adds to elsewhere, and sets and lists that it never fills."""
    filled: dict[tuple[str, str], set[str]] = {}
    for node in site.source.walk(outermost_function(site)):
        match node:
            case cst.Call(
                func=cst.Attribute(value=cst.Name(value=receiver), attr=cst.Name(value=method)),
                args=[cst.Arg(value=value)],
            ):
                if method in _ADDING:
                    filled.setdefault((receiver, method), set()).update(site.kinds(value))
    names = {receiver for receiver, _ in filled}
    for binding in site.values():
        if binding.name not in names and not binding.parameter:
            if "set" in binding.kinds:
                yield binding.name, "add", set()
            elif "list" in binding.kinds and "[]" in binding.values:
                yield binding.name, "append", set()
    for (receiver, method), kinds in filled.items():
        yield receiver, method, kinds


def _loop_variables_first(site: Site, bindings: Iterable[Binding]) -> list[Binding]:
    """Loop variables first, then the parameters of an inner function, then the others, the latest bound first."""
    loops = [a for a in site.source.ancestors(site.node) if isinstance(a, cst.For)]
    targets = [n.value for loop in loops for n in site.source.walk(loop.target) if isinstance(n, cst.Name)]
    own = {} if site.scope.node is outermost_function(site) else site.scope.bindings

    def key(binding: Binding) -> tuple[int, int]:
        if binding.name in targets:
            return 0, targets.index(binding.name)
        return (1 if binding.name in own and binding.parameter else 2), -binding.offset

    return sorted(bindings, key=key)


def _neighbours(site: Site) -> set[str]:
    block = block_of(site) or ()
    return {site.code(statement) for statement in block if isinstance(statement, cst.SimpleStatementLine)}


def insert_assignment(site: Site) -> Iterator[Variant]:
    """`previous = current`: sets a plain variable in a loop that reads it and never sets it."""
    loops = [a for a in site.source.ancestors(site.node) if isinstance(a, cst.While | cst.For)]
    if block_of(site) is None or not site.scope.local or not loops:
        return
    start, end = site.source.span(loops[-1])
    near = _neighbours(site)
    rank = 0
    for target in (b for b in site.values() if _is_stale(b, start, end)):
        for value in site.values_after():
            code = f"{target.name} = {value.name}"
            if value is not target and code not in near:
                weight = 0.5 * affinity(target.kinds, value.kinds) / (1 + rank)
                yield from beside(site, code, f"insert {code}", weight)
                rank += 1


def _is_stale(binding: Binding, start: int, end: int) -> bool:
    """Whether a loop reads a variable that was set before it, never sets it, and does not use it as a collection."""
    read = any(start <= offset < end for offset in binding.reads)
    written = any(start <= offset < end for offset in binding.writes)
    collection = binding.kinds & {"list", "dict", "set", "sized"}
    return read and not written and not collection and not binding.parameter


def insert_reset(site: Site) -> Iterator[Variant]:
    """`group = []`: gives a variable its first value again, at the end of a branch in a loop."""
    block = block_of(site)
    loops = [a for a in site.source.ancestors(site.node) if isinstance(a, cst.While | cst.For)]
    if block is None or site.node is not block[-1] or not loops:
        return
    start, _ = site.source.span(loops[-1])
    near = _neighbours(site)
    for rank, binding in enumerate(b for b in site.values_after() if b.values and b.offset < start and not b.parameter):
        code = f"{binding.name} = {binding.values[0]}"
        if len(code) < 40 and code not in near and "\n" not in code:
            yield from beside(site, code, f"insert {code}", 0.2 / (1 + rank))


def insert_jump(site: Site) -> Iterator[Variant]:
    """Inserts `break` or `continue` at the end of a block, or a guard before a statement."""
    block = block_of(site)
    if block is None or not site.scope.local or is_docstring(site.node):
        return
    looping = in_loop(site)
    ends_block = site.node is block[-1] and not jumps(site.node) and not isinstance(site.parent, cst.Module)
    if looping and ends_block and not isinstance(site.source.parent(site.parent or site.node), cst.For | cst.While):
        yield Variant((after(site, "break"),), "insert break", 0.2)
        yield Variant((after(site, "continue"),), "insert continue", 0.15)
    yield from _guards(site, looping)


def _guards(site: Site, looping: bool) -> Iterator[Variant]:
    used = dict.fromkeys(n.value for n in site.source.walk(site.node) if isinstance(n, cst.Name))
    bindings = [b for b in site.values() if b.name in used]
    values = _return_values(site)
    rank = 0
    for binding in bindings[:4]:
        tests = [f"not {binding.name}", f"{binding.name} is None"]
        if "int" in binding.kinds:
            tests = [f"{binding.name} <= 0", f"{binding.name} == 0"]
        for test in tests:
            actions = (["continue"] if looping else []) + [f"return {r}".rstrip() for r in (*values[:3], binding.name)]
            for action in actions:
                yield from _guard(site, test, action, 0.1 / (1 + rank) ** 0.8)
                rank += 1


def _guard(site: Site, test: str, action: str, weight: float) -> Iterator[Variant]:
    indent = site.source.indent(site.node)
    inner = f"{indent}\t" if indent and indent.endswith("\t") else f"{indent}    "
    code = f"if {test}:{site.source.newline}{inner}{action}"
    yield Variant((before(site, code),), f"if {test}: {action}", weight)


def _return_values(site: Site) -> list[str]:
    """The values that an early return could give: those that the function returns elsewhere, then empty values."""
    returned = (node.value for node in site.source.walk(site.scope.node) if isinstance(node, cst.Return))
    simple = (v for v in returned if isinstance(v, cst.Name | cst.Integer | cst.List | cst.SimpleString))
    texts = [text for text in map(site.code, simple) if len(text) < 12]
    return list(dict.fromkeys([*texts, "", "[]", "False", "0"]))
