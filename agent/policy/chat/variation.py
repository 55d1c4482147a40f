"""Variations: an angle, a failing test and files to begin with, which make attempts at a state differ.

A variation depends only on the place in the tree, and comes last in the conversation, so that all attempts at a state
share a prefix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.actions.excerpt import excerpt
from agent.measure.diffs import parse
from agent.measure.ids import file_of
from agent.policy import Position
from agent.prompts import names, render
from agent.untrusted import terminal_text, visible

ANGLES = tuple(name for name in names() if name.startswith("angle_"))
MESSAGE_BYTES = 2_000
FILES = 3

_PLACE = re.compile(r"([\w.][\w./-]*\.[A-Za-z]\w{0,4}):\d+")
"""A file and a line, as tracebacks and compilers write them."""


@dataclass(frozen=True, slots=True)
class Variation:
    """Where one attempt should begin."""

    angle: str
    """How to look at the problem, in words."""
    test: str = ""
    """A failing test; empty if only one test fails."""
    message: str = ""
    files: tuple[str, ...] = ()
    """Files that the failures name and that no attempt has changed so far."""


def variation(position: Position) -> Variation | None:
    """The variation of an attempt; None for the first attempt at a state, which chooses its own approach."""
    if position.index == 0:
        return None
    report = position.node.report
    failing = [test for test in position.task.goal_tests if test in report.failures] or list(report.failures)
    test = failing[position.index % len(failing)] if len(failing) > 1 else ""
    return Variation(
        angle=render(ANGLES[(position.node.id + position.index - 1) % len(ANGLES)]).strip(),
        test=visible(test),
        message=excerpt(visible(terminal_text(report.messages.get(test, ""))), MESSAGE_BYTES)[0],
        files=_untouched(position, failing),
    )


def _untouched(position: Position, failing: list[str]) -> tuple[str, ...]:
    messages = (position.node.report.messages.get(test, "") for test in failing)
    named = dict.fromkeys(path for message in messages for path in _PLACE.findall(message))
    changed = {path for node in position.path for path in node.edited}
    changed |= {file.path for tried in position.tried for file in parse(tried.changes.encode("utf-8", "replace"))}
    changed |= set(map(file_of, failing))
    return tuple(visible(path) for path in named if path not in changed)[:FILES]
