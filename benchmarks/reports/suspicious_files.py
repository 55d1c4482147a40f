"""Finds files that steer test runners (`conftest.py`, `pytest.ini`) in patches that resolve their instances.

Invariant: no verdict is changed. An eval script runs the tests with such files as the patch left them, and they can
forge results, so a person has to look at them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from agent.measure.protection import runners_go_by
from agent.untrusted import escaped
from benchmarks.batch.batch import Attempt
from benchmarks.data.clones import GitRefused, paths_of
from benchmarks.grading.verdicts import Verdicts, patch_digest

_NAMED = re.compile(rb'^(?:\+\+\+|---|rename to|copy to) "?(?:[ab]/)?([^\t\r\n"]+)', re.MULTILINE)


def steering(attempts: Iterable[Attempt], verdicts: Verdicts) -> dict[str, tuple[str, ...]]:
    """Such files in the patches that resolve their instances, by instance id; instances without any are left out."""
    graded = ((attempt, verdicts.get((attempt.instance_id, patch_digest(attempt.patch)))) for attempt in attempts)
    files = {a.instance_id: _files(a.patch) for a, verdict in graded if verdict is not None and verdict.resolved}
    return {name: paths for name, paths in sorted(files.items()) if paths}


def _files(patch: bytes) -> tuple[str, ...]:
    return tuple(path for path in _paths(patch) if runners_go_by(path))


def _paths(patch: bytes) -> tuple[str, ...]:
    """The paths that a patch changes, as git reads them; if git refuses the patch, from the lines that the command
    `patch` uses."""
    try:
        return paths_of(patch)
    except GitRefused:
        names: list[bytes] = _NAMED.findall(patch)
        return tuple(sorted({name.decode("utf-8", "surrogateescape") for name in names}))


def as_text(files: Mapping[str, tuple[str, ...]]) -> str:
    """The files as text, with a line for each instance; empty without any."""
    if not files:
        return ""
    lines = [f"  {name}: {', '.join(map(escaped, paths))}" for name, paths in files.items()]
    return "\n".join(["resolved, and the patch has files that runners of tests go by; look at them:", *lines])
