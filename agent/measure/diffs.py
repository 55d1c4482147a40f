"""Parse git patches (which lines of which file they add and remove), and compare texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

LINK = re.compile(rb"(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) 120000")
FILE = re.compile(rb"^(?=diff --git )", re.MULTILINE)
HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one text file."""

    path: str
    added: dict[int, str] = field(default_factory=dict)
    """Added text by 1-based line of the new file."""
    removed: list[str] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    """1-based lines of the old file that are removed or replaced."""
    beside: set[int] = field(default_factory=set)
    """1-based lines of the old file next to which lines are added without removing any."""
    link: bool = False
    """Whether the file becomes a symbolic link; its text is then the target."""
    new: bool = False
    """Whether the patch creates the file."""


def parse(patch: bytes) -> list[FilePatch]:
    """Return the text files of a git patch, in order; a removed file has its old name. Bytes are decoded with
    replacement."""
    files: list[FilePatch] = []
    lines = iter(patch.split(b"\n"))
    old, link = b"", False
    for line in lines:
        if line.startswith(b"diff "):
            link = False
        elif LINK.fullmatch(line):
            link = True
        elif line.startswith(b"--- "):
            old = line[4:]
        elif line.startswith(b"+++ "):
            name = _name(old if line[4:] == b"/dev/null" else line[4:])
            files.append(FilePatch(name, link=link, new=old == b"/dev/null"))
        elif hunk := HUNK.match(line):
            _read_hunk(files[-1], lines, int(hunk[1]), int(hunk[2] or 1), int(hunk[3]), int(hunk[4] or 1))
    return files


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """The lengths of the common beginning and the common end of both, without overlap."""
    most = min(len(old), len(new))
    head = next((n for n in range(most) if old[n] != new[n]), most)
    most -= head
    return head, next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)


def sections(patch: bytes) -> list[bytes]:
    """The parts of a git patch, one for each file, in order."""
    return [section for section in FILE.split(patch) if section.strip()]


def _read_hunk(file: FilePatch, lines: Iterator[bytes], old: int, old_left: int, number: int, new_left: int) -> None:
    if old_left == 0:  # git numbers an empty range by the line before it
        old += 1
    while old_left > 0 or new_left > 0:
        line = next(lines)
        mark, text = line[:1], line[1:].decode(errors="replace")
        if mark == b"+":
            file.added[number] = text
            if old - 1 not in file.gone:
                file.beside.update({old - 1, old} - {0})
        elif mark == b"-":
            file.removed.append(text)
            file.gone.add(old)
        if mark in (b"+", b" ", b""):
            number, new_left = number + 1, new_left - 1
        if mark in (b"-", b" ", b""):
            old, old_left = old + 1, old_left - 1


def _name(field: bytes) -> str:
    """The path in a `---` or `+++` line, without its `a/` or `b/` and without git's quoting."""
    text = field.rstrip(b"\t\r")
    if text.startswith(b'"'):
        text = re.sub(rb"\\([0-7]{3}|.)", _unquote, text.strip(b'"'))
    return text[2:].decode("utf-8", "surrogateescape")


def _unquote(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    if len(code) == 3:
        return bytes([int(code, 8)])
    return {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}.get(code, code)
