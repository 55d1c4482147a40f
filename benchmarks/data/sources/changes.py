"""Reads from the headers of a git patch which files it changes.

Sets have tens of thousands of patches, and running git on each would take longer than everything else in reading them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass(slots=True)
class Change:
    """The change of one file: its path before and after; None: it does not exist."""

    old: str | None = None
    new: str | None = None
    has_hunks: bool = False


def touched(patch: bytes) -> tuple[str, ...]:
    """Every path that a git patch adds, changes, removes or renames, sorted. Raises ValueError like `changes`."""
    return tuple(sorted({path for change in changes(patch) for path in (change.old, change.new) if path is not None}))


def kept(patch: bytes) -> tuple[str, ...]:
    """The paths in `touched` that exist after the patch. Raises ValueError like `changes`."""
    files = changes(patch)
    removed = {file.old for file in files if file.new is None}
    return tuple(sorted({file.new for file in files if file.new is not None} - removed))


def changes(patch: bytes) -> list[Change]:
    """The file changes of a git patch, in its order.

    Raises:
        ValueError: the text is not a git patch, or is cut short.
    """
    files: list[Change] = []
    old = new = 0  # lines of each side that the hunk still has
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            if line[:1] not in (b" ", b"", b"-", b"+", b"\\"):
                raise ValueError(f"the patch breaks off before {line[:80]!r}")
            old, new = old - (line[:1] in b" -"), new - (line[:1] in b" +")
        elif files and (hunk := _HUNK.match(line)):
            old, new = (int(length or 1) for length in hunk.groups())
            files[-1].has_hunks = True
        else:
            _read_header(files, line)
    if (old, new) != (0, 0) or (patch and not files):
        raise ValueError("the patch breaks off" if files else "it is not a git patch")
    return files


def _read_header(files: list[Change], line: bytes) -> None:
    """Update the last file from a line of its header, or start the next file."""
    word, _, rest = line.partition(b" ")
    if line.startswith(b"diff --git "):
        files.append(Change(*_both(rest.removeprefix(b"--git "))))
    elif word == b"---" and rest:
        if not files or files[-1].has_hunks:
            files.append(Change())
        files[-1].old = _side(rest)
    elif files and word == b"+++" and rest:
        files[-1].new = _side(rest)
    elif files and line.startswith((b"rename from ", b"rename to ", b"copy from ", b"copy to ")):
        side = "old" if rest.startswith(b"from ") else "new"
        setattr(files[-1], side, _plain(rest.partition(b" ")[2]))
    elif files and line.startswith(b"new file mode "):
        files[-1].old = None
    elif files and line.startswith(b"deleted file mode "):
        files[-1].new = None


def _both(names: bytes) -> tuple[str | None, str | None]:
    """Both names in `a/x b/x`. They are the same unless another line of the header gives other names."""
    if names.startswith(b'"'):
        quoted = re.match(rb'"(?:[^"\\]|\\.)*"', names)
        same = _side(quoted[0]) if quoted else None
    else:
        same = _side(names[: len(names) // 2])
    return same, same


def _side(field: bytes) -> str | None:
    """The name without `a/` or `b/` and without the date that some tools put after it; None for /dev/null."""
    name = _plain(field if field.startswith(b'"') else field.partition(b"\t")[0])
    if name == os.devnull:
        return None
    if not (inner := name.partition("/")[2]):
        raise ValueError(f"the patch names {name!r} without a/ or b/")
    return inner


def _plain(name: bytes) -> str:
    """The name as it is on disk, without git's quoting."""
    if name.startswith(b'"'):
        name = name.strip()[1:-1].decode("unicode_escape").encode("latin-1")
    return os.fsdecode(name.rstrip(b"\r"))
