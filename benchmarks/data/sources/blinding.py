"""Blinding: ensures that the test command that a solver gets names no hidden test.

Several sets give a test command with each row, which in some rows selects the files of the hidden tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from agent.measure.ids import file_of
from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.sources import changes

NOTHING = "true"
"""The test command of a solver if the language has no usual one, as a solver must know nothing about the tests."""
_PARTS = re.compile(r"::|[\s()]+|#")
_PARTICULAR = re.compile(r"[a-z0-9]_[a-z0-9]|[a-z][A-Z0-9]")
"""Matches names of tests that are not ordinary words: `test_add`, `TestAdd`."""


def blinded(instance: Instance, usual: str) -> Instance:
    """Return the instance. If its own test command names hidden tests, the `usual` command of the language replaces it
    (empty: there is none)."""
    if not names_hidden(instance.task.test_command, instance.hidden):
        return instance
    return replace(instance, task=replace(instance.task, test_command=usual or NOTHING))


def names_hidden(text: str, hidden: Hidden) -> bool:
    """Whether a command names a hidden file or test."""
    contained = {name for name in _names(hidden) if len(name) > 1 and name in text}
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?!\w)", text) for name in contained)


def _names(hidden: Hidden) -> Iterator[str]:
    """The paths of hidden files, their names as modules, and the distinctive parts of the ids of hidden tests."""
    ids = (*hidden.fail_to_pass, *hidden.pass_to_pass)
    for path in (*changes.touched(hidden.test_patch), *(file_of(test) for test in ids if "::" in test)):
        yield path
        yield path.removesuffix(".py").replace("/", ".")
    for test in ids:
        yield from (part for part in _PARTS.split(test) if _PARTICULAR.search(part))
