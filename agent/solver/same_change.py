"""Compares candidates: those whose source changes lead to the same program are one candidate.

A source change is the part of a patch that changes neither tests nor scratch files. It is only compared; the patch of a
candidate is never changed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from hashlib import sha256
from pathlib import PurePosixPath

from agent.measure.diffs import parse, sections
from agent.parsing import python


def source_change(patch: bytes, is_test: Callable[[str], bool]) -> bytes:
    """Return the sections of a git patch that are neither tests nor scratch files. A scratch file is a new file in the
    top directory of the repository that no other section names. If nothing else is left, the whole patch is returned,
    so that two patches that change only tests are two candidates."""
    sources = [section for section in sections(patch) if not is_test(_path(section))]
    return b"".join(section for section in sources if not _is_scratch(section, sources)) or patch


def program(source: bytes, read: Callable[[str], bytes]) -> bytes:
    """Return a digest of the files that a source change leads to. `read` returns a file as it is after the change.
    Python files that differ only in comments and layout have the same digest; for other files, the digest is that of
    the change itself."""
    files = (_program(section, read).encode("utf-8", "surrogateescape") for section in sections(source))
    return sha256(b"\0".join(files)).digest()


def _program(section: bytes, read: Callable[[str], bytes]) -> str:
    path = _path(section)
    try:
        tree = python(read(path).decode("utf-8")) if path.endswith(".py") else None
        return f"{path}\n{ast.dump(tree)}" if tree else section.decode("utf-8", "surrogateescape")
    except (OSError, UnicodeDecodeError, RecursionError):  # removed, in another encoding, or nested too deeply
        return section.decode("utf-8", "surrogateescape")


def _path(section: bytes) -> str:
    """Return the file that a section changes; empty if the section has no text (a binary file, a change of mode)."""
    files = parse(section)
    return files[0].path if files else ""


def _is_scratch(section: bytes, sources: list[bytes]) -> bool:
    path = PurePosixPath(_path(section))
    if b"\n--- /dev/null\n" not in section or len(path.parts) != 1:
        return False
    name = path.stem.encode("utf-8", "surrogateescape")
    return not any(name in other for other in sources if other is not section)
