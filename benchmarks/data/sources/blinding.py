"""Blinding: the command that a solver is given names no hidden test.

Several sets have a command of their own with each row, and in some rows it selects the files of the hidden tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from agent.measure.ids import file_of
from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.sources import changes

__all__ = ["blinded", "names_hidden"]

NOTHING = "true"
"""What a solver runs where the language has no usual command: it may know nothing of the tests."""
_PARTS = re.compile(r"::|[\s()]+|#")
_PARTICULAR = re.compile(r"[a-z0-9]_[a-z0-9]|[a-z][A-Z0-9]")
"""In names of tests that are no words of everyday: `test_add`, `TestAdd`."""


def blinded(instance: Instance, usual: str) -> Instance:
    """The instance, its tests run by the `usual` command of its language where its own names hidden tests; empty: there
    is none."""
    if not names_hidden(instance.task.test_command, instance.hidden):
        return instance
    return replace(instance, task=replace(instance.task, test_command=usual or NOTHING))


def names_hidden(text: str, hidden: Hidden) -> bool:
    """Whether a command names a file or a test that is hidden."""
    there = {name for name in _names(hidden) if len(name) > 1 and name in text}
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?!\w)", text) for name in there)


def _names(hidden: Hidden) -> Iterator[str]:
    """Files by their paths, and as modules; tests by their own names, where those say what they are."""
    ids = (*hidden.fail_to_pass, *hidden.pass_to_pass)
    for path in (*changes.touched(hidden.test_patch), *(file_of(test) for test in ids if "::" in test)):
        yield path
        yield path.removesuffix(".py").replace("/", ".")
    for test in ids:
        yield from (part for part in _PARTS.split(test) if _PARTICULAR.search(part))
