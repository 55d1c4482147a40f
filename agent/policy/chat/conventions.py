"""Conventions: what a repository's own files tell those who change it.

Laws: they are read once a run, in its base state, and noted, so that every conversation and every session begins with
the same bytes. They are untrusted: whoever may change the repository may write them.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from agent.actions.excerpt import printable
from agent.run.memo import Memo
from agent.untrusted import issue_text
from sandboxes import Provider, Sandbox, Snapshot

__all__ = ["CONVENTIONS", "NAMES", "Convention", "conventions", "cut", "from_note"]

CONVENTIONS = "conventions"
"""Key of the note on the root that holds them."""
NAMES = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md")
"""In the root of the repository, the most important first."""
MOST_BYTES = 8_000
"""Of all files together."""
FILE_BYTES = 1 << 18
"""A larger file is none that a person wrote."""
REFERENCE_CHARACTERS = 120
"""A longer text says more than where to look."""

_HEADING = re.compile(r"^#.*$", re.MULTILINE)
_SENTENCES = re.compile(r"[.!?]\s+\S")


@dataclass(frozen=True, slots=True)
class Convention:
    """One of the files."""

    name: str
    text: str
    """Its beginning, as its page shows it."""
    left_out: int = 0
    """Bytes of the text that are not in it."""


def conventions(provider: Provider, base: Snapshot, once: Memo) -> tuple[Convention, ...]:
    """Those of the repository whose base state this is; none where it has no such files.

    Raises:
        sandboxes.SandboxError: the base state cannot be looked at.
    """

    def find() -> dict[str, Any]:
        with provider.at(base) as box:
            found = _distinct(dict(_read(box)))
        return {"files": [asdict(each) for each in cut(found, MOST_BYTES)]}

    return from_note(once(CONVENTIONS, find))


def from_note(note: Mapping[str, Any] | None) -> tuple[Convention, ...]:
    """What a run has noted of them, if anything."""
    return tuple(Convention(**each) for each in note["files"]) if note else ()


def cut(files: Sequence[Convention], most_bytes: int) -> tuple[Convention, ...]:
    """The files cut at the ends of lines to so many bytes together; those that come first have precedence."""
    kept, room = list[Convention](), most_bytes
    for each in files:
        data = each.text.encode()
        head = data if len(data) <= room else data[: data.rfind(b"\n", 0, room) + 1]
        kept.append(replace(each, text=head.decode().rstrip(), left_out=each.left_out + len(data) - len(head)))
        room -= len(head)
    return tuple(kept)


def _read(box: Sandbox) -> Iterator[tuple[str, str]]:
    for name in NAMES:
        try:
            data = box.read(name, max_bytes=FILE_BYTES)
        except OSError:
            continue
        yield name, issue_text(printable(data.removeprefix(BOM_UTF8))).strip()


def _distinct(texts: Mapping[str, str]) -> list[Convention]:
    """Each text once, and none that only says in which of the other files to look."""
    first = {texts[name]: name for name in reversed([*texts])}
    kept = [name for name, text in texts.items() if text and first[text] == name]
    return [Convention(name, texts[name]) for name in kept if not _refers(texts[name], {*kept} - {name})]


def _refers(text: str, others: set[str]) -> bool:
    """Whether a text is one sentence, or none, that names one of these files."""
    body = _HEADING.sub("", text).strip()
    short = len(body) <= REFERENCE_CHARACTERS and not _SENTENCES.search(body)
    return short and any(name in body for name in others)
