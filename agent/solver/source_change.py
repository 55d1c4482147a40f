"""Source changes: what of a patch changes the program, apart from tests and scratch files. Two attempts with the same
source change are one candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from agent.measure.diffs import parse, sections


def source_change(patch: bytes, is_test: Callable[[str], bool]) -> bytes:
    """The sections of a git patch that are neither tests nor scratch files. A scratch file is a new file at the top of
    the repository that no other section names. The whole patch if it has no other sections: two patches that change
    nothing but tests are two candidates."""
    sources = [section for section in sections(patch) if not is_test(_path(section))]
    return b"".join(section for section in sources if not _is_scratch(section, sources)) or patch


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
