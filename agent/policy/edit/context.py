"""Context: the part of a file that a compact model sees, and how an edit is written for it.

The model sees the function around an edit, its lines and variables numbered, and, if the policy is set so, what the
failing tests printed. The edit is written as the number of its first line and the new text. Edits are ranked by the
likelihood that the model gives to exactly that text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from agent.actions import Edit
from agent.measure.diffs import common_ends
from agent.measure.messages import raised
from agent.parsing import syntax_tree
from agent.policy.edit.numbering import numbered, numbers
from agent.untrusted import escaped

FIX = "<fix>\n"
"""Ends the context in the prompt; the edit follows."""
PRINTED = "<printed>"
"""Begins each line that a failing test printed. The lines of the function begin with `line_token`."""
END = "<end>"
"""Ends an edit."""
MOST_LINES = 120
"""How many lines of a function are shown, from its first on."""
TESTS, PRINTED_LINES, CHARACTERS = 3, 6, 160
"""How many failing tests are shown, how many lines of each, and how many characters of a line."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_ADVICE = "Use -v to get more diff"
"""A line that pytest adds to every cut comparison."""


def line_token(number: int) -> str:
    """The token before a line, by its place in the context, from 1."""
    return f"<L{number}>"


@dataclass(frozen=True, slots=True)
class Context:
    """Some whole lines of a file."""

    path: str
    first: int
    """The number of its first line in the file, 1-based."""
    text: str
    printed: str = ""
    """What the failing tests printed, as from `printed_by`; empty if the model is not shown it."""

    @property
    def last(self) -> int:
        """The number of its last line in the file."""
        return self.first + self.text.count("\n") - 1

    @property
    def prompt(self) -> str:
        """The lines as the model sees them, and after them what tests printed."""
        lines = _lines(numbered(self.text, numbers(self.text)))
        shown = [line_token(n) + line for n, line in enumerate(lines, 1)]
        return "".join([*shown, *(PRINTED + line for line in _lines(self.printed)), FIX])

    def holds(self, edits: Sequence[Edit]) -> bool:
        """Whether there are edits, and all of them lie in the context."""
        return bool(edits) and all(edit.path == self.path and self._spans(edit) for edit in edits)

    def action(self, edits: Sequence[Edit]) -> str:
        """The edits as a model writes them, in the order of the lines."""
        return "".join(self._written(edit) for edit in sorted(edits, key=lambda edit: edit.line or 0)) + END

    def _spans(self, edit: Edit) -> bool:
        height = max(1, edit.old.count("\n"))
        return edit.line is not None and self.first <= edit.line and edit.line + height - 1 <= self.last

    def _written(self, edit: Edit) -> str:
        """The edit's lines, without unchanged ones at both ends."""
        assert edit.line is not None
        old, new = _lines(edit.old), _lines(edit.new)
        head, tail = common_ends(old, new)
        removed = len(old) - head - tail
        text = numbered("".join(new[head : len(new) - tail]), numbers(self.text))
        return f"{line_token(edit.line - self.first + 1 + head)}{'' if removed == 1 else f'<{removed}>'}{text}"

    def to_json(self) -> dict[str, Any]:
        """The context as plain data, for a journal."""
        shown = {"printed": self.printed} if self.printed else {}
        return {"path": self.path, "first": self.first, "text": self.text, **shown}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Context:
        """The inverse of `to_json`. Raises KeyError for other data."""
        return cls(data["path"], data["first"], data["text"], data.get("printed", ""))


def printed_by(messages: Mapping[str, str], failing: Collection[str]) -> str:
    """Whole lines with what the first failing tests printed, in the order of their ids: the name of each, and the error
    that ended it, shortened. The same outcome gives the same text."""
    shown = []
    for test in sorted(failing)[:TESTS]:
        message = _ADDRESS.sub("", messages.get(test, ""))
        error = [line for line in raised(message) if line != _ADVICE][:PRINTED_LINES]
        name = test.rpartition("::")[2]
        lines = (" ".join([f"{name}:", *error[:1]]), *error[1:])
        shown += [escaped(line)[:CHARACTERS] + "\n" for line in lines]
    return "".join(shown)


def contexts(path: str, data: bytes, lines: Iterable[int], printed: str = "") -> list[Context]:
    """The functions of a file that hold these lines, in order; none for lines outside of functions, or for a file that
    is not Python (another policy than `mutate` may have edited it)."""
    try:
        text = data.decode().replace("\r\n", "\n")
        functions = _functions(syntax_tree(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    rows, edited = _lines(text), set(lines)
    found = []
    for first, last in functions:
        if not edited.isdisjoint(range(first, last + 1)):
            shown = "".join(rows[first - 1 : min(last, first + MOST_LINES - 1)])
            found.append(Context(path, first, shown if shown.endswith("\n") else shown + "\n", printed))
    return found


def _lines(text: str) -> list[str]:
    """The lines with their ends. Only a line feed ends a line, as in Python's grammar, unlike in `splitlines`."""
    return list(StringIO(text))


def _functions(node: ast.AST) -> list[tuple[int, int]]:
    """First and last line of each outermost function."""
    functions = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            functions.append((first, child.end_lineno or first))
        elif isinstance(child, ast.stmt):
            functions += _functions(child)
    return functions
