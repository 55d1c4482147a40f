"""Features: the kind of an edit, taken from its text alone, so that edits of any policy can be counted."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Sequence
from math import log2

from agent.actions import Edit
from agent.measure.diffs import common_ends

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|'[^'\n]*'|\"[^\"\n]*\"|[<>=!]=|//|\*\*|<<|>>|->|:=|\S")
_KNOWN = {*keyword.kwlist, *dir(builtins)}
SHOWN = 5
"""How many tokens of a change are distinguished; for a longer change, only its length counts."""
LEAST_LIKELY = 8
"""How many steps of likelihood are distinguished, each half of the one before."""


def features(edits: Sequence[Edit], likelihood: float) -> tuple[str, ...]:
    """The change (with placeholders for names and numbers), the kind of statement, and `mutate`'s likelihood, in
    (0, 1]."""
    old = [token for edit in edits for token in _tokens(edit.old)]
    new = [token for edit in edits for token in _tokens(edit.new)]
    head, tail = common_ends(old, new)
    removed, added = _shown(old[head : len(old) - tail]), _shown(new[head : len(new) - tail])
    place = min(LEAST_LIKELY, round(-log2(max(likelihood, 1e-9))))
    return (f"change:{removed} -> {added}", f"gone:{removed}", f"statement:{_statement(old)}", f"likely:{place}")


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(re.sub(r"#.*", "", text))


def _shown(tokens: list[str]) -> str:
    if len(tokens) > SHOWN:
        return f"{_kind(tokens[0])} and {len(tokens) // SHOWN * SHOWN} more"
    return " ".join(map(_kind, tokens)) or "nothing"


def _kind(word: str) -> str:
    """The token itself if it means the same everywhere, otherwise a placeholder."""
    if word in _KNOWN:
        return word
    if word[0].isdigit():
        return word if len(word) == 1 and word in "012" else "number"
    return "text" if word[0] in "'\"" else "name" if word[0].isidentifier() else word


def _statement(tokens: list[str]) -> str:
    first = tokens[0] if tokens else ""
    if keyword.iskeyword(first):
        return first
    return "assignment" if "=" in tokens[:6] else "expression"
