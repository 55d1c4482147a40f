"""Cleans untrusted text (an issue, the output of a command, the content of a file) before a model reads it.

Invariant: a model reads what a person would see, and no more. Hidden markup is removed from issues (`agent.markup`),
colours and other control sequences are removed from output, and invisible characters are written as escapes.

This does not make a text harmless. Everything that people can see passes, whatever it says; so do look-alike letters,
white formulas, and the pages behind links. The sandbox prevents harm if a model follows an instruction in it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

from agent.markup import as_shown

ISSUE_CHARACTERS = 300_000
"""The maximum length of an issue; the rest of a longer one is ignored."""
_CACHED = 16

_TERMINAL = re.compile(
    "\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    "|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\|$)"  # strings: titles, links
    r"|[ -/]*[0-~]"  # everything else
    ")|\x9b[0-?]*[ -/]*[@-~]"
)
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Invisible letters and marks."""
_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180d\u180f]")
"""Variation selectors: one selects how the character before it looks, a row of them is hidden text."""


@lru_cache(maxsize=_CACHED)
def issue_text(statement: str) -> str:
    """Return an issue as its page shows it: without hidden markup, and with invisible characters escaped. It is not
    shortened."""
    return visible(as_shown(statement[:ISSUE_CHARACTERS]))


def fence(kind: str, text: str) -> str:
    """Return a name for the lines around a text. It contains 64 bits of the text's digest, so that the author of the
    text cannot forge the end line."""
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def terminal_text(output: str) -> str:
    """Return the output of a command without control sequences. Each stage of a progress bar becomes a line."""
    return _TERMINAL.sub("", output).replace("\r\n", "\n").replace("\r", "\n")


def visible(text: str) -> str:
    """Write invisible characters (zero width, direction, tags, lone surrogates, rows of variation selectors) as
    escapes: people do not see them, so a model should not obey them."""
    if text.isascii():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if _invisible(c, before) else c
        for before, c in zip(f" {text}", text, strict=False)
    )


def escaped(text: str) -> str:
    """Return the text on one line, with invisible and control characters and line breaks written as escapes. Different
    texts stay different."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in visible(text))


def escaped_lines(text: str) -> str:
    """As `escaped`, but line feeds and tabs stay."""
    return "\n".join("\t".join(map(escaped, line.split("\t"))) for line in text.split("\n"))


def one_line(text: str) -> str:
    """Return the text as one line that is safe to print on a terminal: without control sequences, with invisible
    characters escaped, and with each stretch of white space replaced by one space."""
    return escaped(" ".join(terminal_text(text).split()))


def short_line(text: str, most: int) -> str:
    """Like `one_line`, but a text of more than `most` characters is cut at a word and ends with a mark."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[:most].rpartition(' ')[0] or line[:most]} [...]"


def _invisible(character: str, before: str) -> bool:
    if _SELECTOR.match(character):
        return before.isspace() or before.isascii() or _SELECTOR.match(before) is not None
    return character in _BLANK or unicodedata.category(character) in ("Cf", "Co", "Cs")
