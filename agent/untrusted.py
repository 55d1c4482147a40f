"""Text that strangers wrote (an issue, the output of a command, the content of a file) before a model reads it.

Law: a model reads what a person would see, and no more. Hidden markup of an issue is taken out (`agent.markup`),
colours and other orders to a terminal are taken out of output, and invisible characters are written as escapes.

This does not make a text harmless. What people can see passes, however it is worded; so do look-alike letters, formulas
in white, and what is behind a link. It is the sandbox that keeps an obeyed instruction from doing harm.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

from agent.markup import as_shown

__all__ = ["escaped", "escaped_lines", "fence", "issue_text", "one_line", "terminal_text", "visible"]

ISSUE_CHARACTERS = 300_000
"""Of a longer issue the rest is not looked at."""
_CACHED = 16

_TERMINAL = re.compile(
    "\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    "|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\|$)"  # strings: titles, links
    r"|[ -/]*[0-~]"  # everything else
    ")|\x9b[0-?]*[ -/]*[@-~]"
)
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing."""
_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180d\u180f]")
"""Selects how the character before it looks: one is typography, a row of them is a hidden text."""


@lru_cache(maxsize=_CACHED)
def issue_text(statement: str) -> str:
    """An issue as its page shows it: hidden markup is left out, invisible characters are escapes. Not shortened."""
    return visible(as_shown(statement[:ISSUE_CHARACTERS]))


def fence(kind: str, text: str) -> str:
    """A name for a text between two lines: 64 bits of its own digest, which nobody can put into it beforehand."""
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def terminal_text(output: str) -> str:
    """What a command printed, without its orders to a terminal; each stage of a progress bar is a line."""
    return _TERMINAL.sub("", output).replace("\r\n", "\n").replace("\r", "\n")


def visible(text: str) -> str:
    """The text with characters that show nothing (zero width, direction, tags, lone surrogates, rows of variation
    selectors) written as escapes: people did not see them, so a model should not obey them."""
    if text.isascii():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if _unseen(c, before) else c
        for before, c in zip(f" {text}", text, strict=False)
    )


def escaped(text: str) -> str:
    """The text with all that is not seen, line breaks and control characters included, written as escapes: a name stays
    that name and takes one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in visible(text))


def escaped_lines(text: str) -> str:
    """`escaped`, line by line; line feeds and tabs stay."""
    return "\n".join("\t".join(map(escaped, line.split("\t"))) for line in text.split("\n"))


def one_line(text: str) -> str:
    """What somebody wrote as one line that can be shown on a terminal, without orders to it; what is not seen is
    escaped, white space is single spaces."""
    return escaped(" ".join(terminal_text(text).split()))


def _unseen(character: str, before: str) -> bool:
    if _SELECTOR.match(character):
        return before.isspace() or before.isascii() or _SELECTOR.match(before) is not None
    return character in _BLANK or unicodedata.category(character) in ("Cf", "Co", "Cs")
