"""The edits of a state's own turns as a diff. What shell commands changed is not in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from agent.actions import Action, Edit, Write
from agent.run.tree.node import Step

__all__ = ["as_diff"]


def as_diff(steps: Sequence[Step]) -> str:
    """The edits that succeeded, in order, each with a header that names its file."""
    done = (
        action
        for step in steps
        for action, observation in zip(step.actions, step.observations, strict=False)
        if observation.ok
    )
    return "\n".join(line for action in done for line in _lines(action))


def _lines(action: Action) -> Iterator[str]:
    match action:
        case Edit():
            yield from (f"--- a/{action.path}", f"+++ b/{action.path}")
            for each in action.replacements:
                changed = unified_diff(each.old.splitlines(), each.new.splitlines(), lineterm="", n=3)
                yield from (_hunk(line, action.line) if line.startswith("@@") else line for line in list(changed)[2:])
        case Write():
            yield from (f"+++ b/{action.path}", "@@ the whole file @@")
            yield from (f"+{line}" for line in action.content.splitlines())
        case _:
            return


def _hunk(header: str, line: int | None) -> str:
    """An edit knows its place in the file at most by the line at which it begins."""
    return "@@" if line is None else f"@@ from line {line} on @@"
