"""Numbering: the local variables of a function by number, as a compact model is shown them.

What a variable is called says little about whether its use is right, and to write a name again a model has to have
learned to copy. As numbers, the same way of computing reads alike under all names (arXiv 1812.08693 abstracts
identifiers for the same reason).
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache

__all__ = ["MOST", "numbered", "numbers", "parsed", "spelled"]

MOST = 64
"""Variables of a function that are numbered; further ones keep their names."""
_QUOTED = "|".join(rf"{q * 3}(?:\\.|[^\\])*?{q * 3}|{q}(?:\\.|[^{q}\\\n])*{q}" for q in "\"'")
_WORD = re.compile(rf"(?<![.\w])(?:[rRbBuUfF]{{0,2}}(?:{_QUOTED})|([^\W\d]\w*))", re.DOTALL)
"""A string, or as the first group a name that is no attribute."""
_NUMBER = re.compile(r"<V(\d+)>")
_KEPT = {"self", "cls", "match", "case", "type"}


@lru_cache(maxsize=1024)
def numbers(text: str) -> Mapping[str, int]:
    """The parameters and variables of a function and of all that stands in it, numbered from 1 as they first appear in
    its text.

    Not `self`, `cls`, `match` and the like, nor what is imported, defined by `def` or `class`, or global. Empty where
    the text is no whole function.
    """
    local = _bound(parsed(text)) - _KEPT
    found = dict.fromkeys(word for word in _WORD.findall(text) if word in local)
    return {name: number for number, name in enumerate(list(found)[:MOST], 1)}


def numbered(text: str, known: Mapping[str, int]) -> str:
    """Lines of a function with `<V1>` in the place of the variable that is numbered 1, and so on.

    Strings stay as they are, f-strings too. Keywords of calls count as variables where they are called the same.
    """
    return _WORD.sub(lambda found: f"<V{known[found[1]]}>" if found[1] in known else found[0], text)


def spelled(text: str) -> str:
    """Numbered lines as Python: `V1` in the place of `<V1>`."""
    return _NUMBER.sub(r"V\1", text)


def parsed(text: str) -> ast.Module:
    """Whole lines of a file, indented or not; nothing where they are no Python by themselves."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(f"if 1:\n{text}" if text[:1].isspace() else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _bound(tree: ast.AST) -> set[str]:
    shared = {name for each in ast.walk(tree) if isinstance(each, ast.Global) for name in each.names}
    return {name for each in ast.walk(tree) for name in _names(each)} - shared


def _names(node: ast.AST) -> Iterator[str]:
    """That it binds by itself."""
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
