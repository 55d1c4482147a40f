"""Which files a patch of a set changes, read from its headers alone: sets have tens of thousands of patches, and asking
git about each takes longer than all the rest of reading them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

__all__ = ["Change", "changes", "kept", "touched"]

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


@dataclass(slots=True)
class Change:
    """A file of a patch, by its name before and after; None: there is none."""

    old: str | None = None
    new: str | None = None
    begun: bool = False
    """A hunk of it was seen."""


def touched(patch: bytes) -> tuple[str, ...]:
    """Every path that a git patch adds, changes, removes or renames, sorted. Raises ValueError as `changes` does."""
    return tuple(sorted({name for each in changes(patch) for name in (each.old, each.new) if name is not None}))


def kept(patch: bytes) -> tuple[str, ...]:
    """Those of `touched` that are there once the patch is applied."""
    found = changes(patch)
    removed = {each.old for each in found if each.new is None}
    return tuple(sorted({each.new for each in found if each.new is not None} - removed))


def changes(patch: bytes) -> list[Change]:
    """The files of a git patch, in its order.

    Raises:
        ValueError: it is no patch, or breaks off.
    """
    found: list[Change] = []
    old = new = 0  # lines that the hunk still has of each side
    for line in patch.split(b"\n"):
        if old > 0 or new > 0:
            if line[:1] not in (b" ", b"", b"-", b"+", b"\\"):
                raise ValueError(f"the patch breaks off before {line[:80]!r}")
            old, new = old - (line[:1] in b" -"), new - (line[:1] in b" +")
        elif found and (hunk := _HUNK.match(line)):
            old, new = (int(length or 1) for length in hunk.groups())
            found[-1].begun = True
        else:
            _see(found, line)
    if (old, new) != (0, 0) or (patch and not found):
        raise ValueError("the patch breaks off" if found else "it is no git patch")
    return found


def _see(found: list[Change], line: bytes) -> None:
    """Take a line of a header to what is known of the file, which may be the next one."""
    word, _, said = line.partition(b" ")
    if line.startswith(b"diff --git "):
        found.append(Change(*_both(line.removeprefix(b"diff --git "))))
    elif word == b"---" and said:
        if not found or found[-1].begun:
            found.append(Change())
        found[-1].old = _side(said)
    elif found and word == b"+++" and said:
        found[-1].new = _side(said)
    elif found and line.startswith((b"rename from ", b"rename to ", b"copy from ", b"copy to ")):
        side = "old" if said.startswith(b"from ") else "new"
        setattr(found[-1], side, _plain(said.partition(b" ")[2]))
    elif found and line.startswith(b"new file mode "):
        found[-1].old = None
    elif found and line.startswith(b"deleted file mode "):
        found[-1].new = None


def _both(names: bytes) -> tuple[str | None, str | None]:
    """Both names of `a/x b/x`, which are the same where no other line says them."""
    if names.startswith(b'"'):
        quoted = re.match(rb'"(?:[^"\\]|\\.)*"', names)
        same = _side(quoted[0]) if quoted else None
    else:
        same = _side(names[: len(names) // 2])
    return same, same


def _side(said: bytes) -> str | None:
    """The name without `a/` or `b/`, and without the date that some tools put after it."""
    name = _plain(said if said.startswith(b'"') else said.partition(b"\t")[0])
    if name == os.devnull:
        return None
    if not (inner := name.partition("/")[2]):
        raise ValueError(f"the patch names {name!r} without a/ or b/")
    return inner


def _plain(name: bytes) -> str:
    """As it is on disk: git quotes names that are not plain."""
    if name.startswith(b'"'):
        name = name.strip()[1:-1].decode("unicode_escape").encode("latin-1")
    return os.fsdecode(name.rstrip(b"\r"))
