"""Context: what a compact model is shown of a file, and how an edit is written for it.

The function around an edit, its lines and its variables numbered, then the edit as the number of its first line and the
text that stands there afterwards. Enumerated edits are ranked by how likely a model finds exactly that text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from agent.actions import Edit
from agent.policy.edit.features import alike
from agent.policy.edit.numbering import numbered, numbers

__all__ = ["END", "MENDS", "Context", "contexts", "line_token"]

MENDS = "<fix>\n"
"""Ends what is shown; the edit comes after it."""
END = "<end>"
"""Ends an edit."""
MOST_LINES = 120
"""Of a function that are shown, from its first on."""


def line_token(number: int) -> str:
    """What a line begins with, by its place in the context, from 1."""
    return f"<L{number}>"


@dataclass(frozen=True, slots=True)
class Context:
    """Some whole lines of a file."""

    path: str
    first: int
    """The number of its first line in the file, 1-based."""
    text: str

    @property
    def last(self) -> int:
        """The number of its last line in the file."""
        return self.first + self.text.count("\n") - 1

    @property
    def prompt(self) -> str:
        """The lines as a model is shown them."""
        lines = _lines(numbered(self.text, numbers(self.text)))
        return "".join(line_token(n) + line for n, line in enumerate(lines, 1)) + MENDS

    def holds(self, edits: Sequence[Edit]) -> bool:
        """Whether all of the edits lie in it."""
        return bool(edits) and all(each.path == self.path and self._at(each) for each in edits)

    def action(self, edits: Sequence[Edit]) -> str:
        """The edits as a model writes them, in the order of the lines."""
        return "".join(self._written(each) for each in sorted(edits, key=lambda e: e.line or 0)) + END

    def _at(self, edit: Edit) -> bool:
        height = max(1, edit.old.count("\n"))
        return edit.line is not None and self.first <= edit.line and edit.line + height - 1 <= self.last

    def _written(self, edit: Edit) -> str:
        """Its lines without those that stay as they are at both ends."""
        assert edit.line is not None
        old, new = _lines(edit.old), _lines(edit.new)
        head, tail = alike(old, new)
        gone = len(old) - head - tail
        text = numbered("".join(new[head : len(new) - tail]), numbers(self.text))
        return f"{line_token(edit.line - self.first + 1 + head)}{'' if gone == 1 else f'<{gone}>'}{text}"

    def to_json(self) -> dict[str, Any]:
        """Plain data, for a journal."""
        return {"path": self.path, "first": self.first, "text": self.text}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Context:
        """What `to_json` gave. Raises KeyError when it did not."""
        return cls(data["path"], data["first"], data["text"])


def contexts(path: str, data: bytes, lines: Iterable[int]) -> list[Context]:
    """The functions of a file that hold these lines, each once, in order; lines outside of functions have none, nor has
    a file that is no Python, which others than `mutate` may have edited."""
    try:
        text = data.decode().replace("\r\n", "\n")
        functions = _functions(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    rows = _lines(text)
    wanted = set(lines)
    found = []
    for first, last in functions:
        if wanted & set(range(first, last + 1)):
            shown = "".join(rows[first - 1 : min(last, first + MOST_LINES - 1)])
            found.append(Context(path, first, shown if shown.endswith("\n") else shown + "\n"))
    return found


def _lines(text: str) -> list[str]:
    """With their ends. Only a line feed ends one, as in Python's grammar; `splitlines` knows more."""
    return list(StringIO(text))


def _functions(node: ast.AST) -> list[tuple[int, int]]:
    """First and last line of each function that stands in no other."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            found.append((first, child.end_lineno or first))
        elif isinstance(child, ast.stmt):
            found += _functions(child)
    return found
