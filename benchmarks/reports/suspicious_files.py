"""Steering: files that runners of tests go by (`conftest.py`, `pytest.ini`), where a patch that is resolved has them.

Law: it changes no verdict. An eval script runs the tests with such files as the patch left them, and whoever forges
results does it there: a person has to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from agent.measure.protection import runners_go_by
from benchmarks.batch.batch import Attempt
from benchmarks.data.clones import GitRefused, paths_of
from benchmarks.grading.verdicts import Verdicts, patch_digest

__all__ = ["as_text", "steering"]

_NAMED = re.compile(rb'^(?:\+\+\+|---|rename to|copy to) "?(?:[ab]/)?([^\t\r\n"]+)', re.MULTILINE)


def steering(attempts: Iterable[Attempt], verdicts: Verdicts) -> dict[str, tuple[str, ...]]:
    """Such files by instance, of patches that are resolved; instances without any are left out."""
    graded = ((attempt, verdicts.get((attempt.instance_id, patch_digest(attempt.patch)))) for attempt in attempts)
    found = {a.instance_id: _files(a.patch) for a, verdict in graded if verdict is not None and verdict.resolved}
    return {name: files for name, files in sorted(found.items()) if files}


def _files(patch: bytes) -> tuple[str, ...]:
    return tuple(path for path in _paths(patch) if runners_go_by(path))


def _paths(patch: bytes) -> tuple[str, ...]:
    """As git reads the patch; where it does not, as the lines say that `patch` goes by."""
    try:
        return paths_of(patch)
    except GitRefused:
        named: list[bytes] = _NAMED.findall(patch)
        return tuple(sorted({path.decode("utf-8", "surrogateescape") for path in named}))


def as_text(found: Mapping[str, tuple[str, ...]]) -> str:
    """For people, an instance a line; empty where there is none."""
    if not found:
        return ""
    lines = [f"  {name}: {', '.join(map(_printable, files))}" for name, files in found.items()]
    return "\n".join(["resolved, and the patch has files that runners of tests go by; look at them:", *lines])


def _printable(path: str) -> str:
    return path if path.isprintable() else ascii(path)
