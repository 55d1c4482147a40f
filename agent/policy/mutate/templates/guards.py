"""Guards: a missing early return, `continue` or `break`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from agent.policy.mutate.block import after, before, block_of, in_loop, is_docstring, jumps
from agent.policy.mutate.site import Site, Variant

__all__ = ["insert_jump"]


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
    results = _results(site)
    rank = 0
    for binding in bindings[:4]:
        tests = [f"not {binding.name}", f"{binding.name} is None"]
        if "int" in binding.kinds:
            tests = [f"{binding.name} <= 0", f"{binding.name} == 0"]
        for test in tests:
            actions = (["continue"] if looping else []) + [f"return {r}".rstrip() for r in (*results[:3], binding.name)]
            for action in actions:
                yield from _guard(site, test, action, 0.1 / (1 + rank) ** 0.8)
                rank += 1


def _guard(site: Site, test: str, action: str, weight: float) -> Iterator[Variant]:
    indent = site.source.indent(site.node)
    inner = f"{indent}\t" if indent and indent.endswith("\t") else f"{indent}    "
    code = f"if {test}:{site.source.newline}{inner}{action}"
    yield Variant((before(site, code),), f"if {test}: {action}", weight)


def _results(site: Site) -> list[str]:
    """The values that an early return could give: those that the function returns elsewhere, then empty values."""
    returned = (node.value for node in site.source.walk(site.scope.node) if isinstance(node, cst.Return))
    simple = (v for v in returned if isinstance(v, cst.Name | cst.Integer | cst.List | cst.SimpleString))
    texts = [text for text in map(site.code, simple) if len(text) < 12]
    return list(dict.fromkeys([*texts, "", "[]", "False", "0"]))
