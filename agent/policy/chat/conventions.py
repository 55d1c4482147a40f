"""Conventions: the repository's own files with instructions for contributors.

Invariants: they are read once per run, in the base state, and recorded, so that every conversation in every session
begins with the same bytes. They are untrusted: anyone who can change the repository can write them.
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

CONVENTIONS = "conventions"
"""The key of the note on the root node that holds them."""
NAMES = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md")
"""Files in the root of the repository, the most important first."""
MOST_BYTES = 8_000
"""The most bytes of all files together."""
FILE_BYTES = 1 << 18
"""The size of the largest file that is read; no person writes a larger one."""
REFERENCE_CHARACTERS = 120
"""The length of the longest text that can be a mere reference to another file."""

_HEADING = re.compile(r"^#.*$", re.MULTILINE)
_SENTENCES = re.compile(r"[.!?]\s+\S")


@dataclass(frozen=True, slots=True)
class Convention:
    """One of the files."""

    name: str
    text: str
    """The beginning of the file, without text that the rendered page hides."""
    left_out: int = 0
    """How many bytes of the file are missing from the text."""


def conventions(provider: Provider, base: Snapshot, memo: Memo) -> tuple[Convention, ...]:
    """The conventions in the base state; empty if the repository has no such files.

    Raises:
        sandboxes.SandboxError: the base state cannot be read.
    """

    def find() -> dict[str, Any]:
        with provider.at(base) as box:
            files = _distinct(dict(_read(box)))
        return {"files": [asdict(file) for file in cut(files, MOST_BYTES)]}

    return from_note(memo(CONVENTIONS, find))


def from_note(note: Mapping[str, Any] | None) -> tuple[Convention, ...]:
    """The conventions that a run recorded, if any."""
    return tuple(Convention(**file) for file in note["files"]) if note else ()


def cut(files: Sequence[Convention], most_bytes: int) -> tuple[Convention, ...]:
    """The files, cut at line ends to `most_bytes` in all; earlier files take precedence."""
    kept, room = list[Convention](), most_bytes
    for file in files:
        data = file.text.encode()
        head = data if len(data) <= room else data[: data.rfind(b"\n", 0, room) + 1]
        kept.append(replace(file, text=head.decode().rstrip(), left_out=file.left_out + len(data) - len(head)))
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
    """Return each text once, leaving out files that only refer to another one."""
    first = {texts[name]: name for name in reversed([*texts])}
    kept = [name for name, text in texts.items() if text and first[text] == name]
    return [Convention(name, texts[name]) for name in kept if not _refers(texts[name], {*kept} - {name})]


def _refers(text: str, others: set[str]) -> bool:
    """Whether a text is at most one sentence, and names one of these files."""
    body = _HEADING.sub("", text).strip()
    short = len(body) <= REFERENCE_CHARACTERS and not _SENTENCES.search(body)
    return short and any(name in body for name in others)
