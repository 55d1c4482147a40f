"""Numbering: replaces the local variables of a function by numbers, for a compact model.

A variable's name says little about whether its use is right, and repeating a name requires a model that has learned to
copy. With numbers, the same computation reads the same under all names (arXiv 1812.08693 abstracts identifiers for the
same reason).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from agent.parsing import python

MOST = 64
"""How many variables of a function are numbered; further ones keep their names."""
_QUOTED = "|".join(rf"{q * 3}(?:\\.|[^\\])*?{q * 3}|{q}(?:\\.|[^{q}\\\n])*{q}" for q in "\"'")
_WORD = re.compile(rf"(?<![.\w])(?:[rRbBuUfF]{{0,2}}(?:{_QUOTED})|([^\W\d]\w*))", re.DOTALL)
"""A string, or (as the first group) a name that is not an attribute."""
_NUMBER = re.compile(r"<V(\d+)>")
_KEPT = {"self", "cls", "match", "case", "type"}


@lru_cache(maxsize=1024)
def numbers(text: str) -> Mapping[str, int]:
    """The parameters and variables of a function and its inner functions, numbered from 1 in the order of the text.

    Left out are `self`, `cls`, `match` and the like, and names that are imported, global, or defined by `def` or
    `class`. Empty if the text is not a whole function.
    """
    local = _bound(parsed(text)) - _KEPT
    names = dict.fromkeys(word for word in _WORD.findall(text) if word in local)
    return {name: number for number, name in enumerate(list(names)[:MOST], 1)}


def numbered(text: str, numbers: Mapping[str, int]) -> str:
    """Lines of a function with `<V1>` in place of the variable with number 1, and so on.

    Strings, including f-strings, stay as they are. A keyword in a call is replaced if a variable has the same name.
    """
    return _WORD.sub(lambda match: f"<V{numbers[match[1]]}>" if match[1] in numbers else match[0], text)


def as_python(text: str) -> str:
    """Numbered lines as Python, with `V1` in place of `<V1>`."""
    return _NUMBER.sub(r"V\1", text)


def parsed(text: str) -> ast.Module:
    """The syntax tree of whole lines, indented or not; an empty module if they are not Python by themselves."""
    return python(f"if 1:\n{text}" if text[:1].isspace() else text) or ast.Module([], [])


def _bound(tree: ast.AST) -> set[str]:
    shared = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    return {name for node in ast.walk(tree) for name in _names(node)} - shared


def _names(node: ast.AST) -> Iterator[str]:
    """The names that the node itself binds."""
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
