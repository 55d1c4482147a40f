"""Compares candidates by their source changes: the part of a patch that changes neither tests nor scratch files.

Attempts whose source changes lead to the same program are one candidate. The patch itself is never changed here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from hashlib import sha256
from pathlib import PurePosixPath

from agent.measure.diffs import parse, sections
from agent.parsing import python


def source_change(patch: bytes, is_test: Callable[[str], bool]) -> bytes:
    """The sections of a git patch that are neither tests nor scratch files. A scratch file is a new file at the top of
    the repository that no other section names. The whole patch if it has no other sections: two patches that change
    nothing but tests are two candidates."""
    sources = [section for section in sections(patch) if not is_test(_path(section))]
    return b"".join(section for section in sources if not _is_scratch(section, sources)) or patch


def program(source: bytes, read: Callable[[str], bytes]) -> bytes:
    """A digest of what a source change makes of the files that it changes, where `read` returns a file after it. It is
    the same for Python files that differ in comments and layout only; of other files, the change itself counts."""
    files = (_program(section, read).encode("utf-8", "surrogateescape") for section in sections(source))
    return sha256(b"\0".join(files)).digest()


def _program(section: bytes, read: Callable[[str], bytes]) -> str:
    path = _path(section)
    try:
        tree = python(read(path).decode("utf-8")) if path.endswith(".py") else None
        return f"{path}\n{ast.dump(tree)}" if tree else section.decode("utf-8", "surrogateescape")
    except (OSError, UnicodeDecodeError, RecursionError):  # removed, of another encoding, or nested too deeply
        return section.decode("utf-8", "surrogateescape")


def _path(section: bytes) -> str:
    """The file that a section changes; empty for a section without text (a binary file, a mode)."""
    files = parse(section)
    return files[0].path if files else ""


def _is_scratch(section: bytes, sources: list[bytes]) -> bool:
    path = PurePosixPath(_path(section))
    if b"\n--- /dev/null\n" not in section or len(path.parts) != 1:
        return False
    name = path.stem.encode("utf-8", "surrogateescape")
    return not any(name in other for other in sources if other is not section)
