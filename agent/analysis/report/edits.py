"""The edits of a state's own turns as a diff, without the changes of shell commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from agent.actions import Action, Edit, Write
from agent.run.tree.node import Step


def as_diff(steps: Sequence[Step]) -> str:
    """The successful edits, in order, each with a header that names its file."""
    successful = (
        action
        for step in steps
        for action, observation in zip(step.actions, step.observations, strict=False)
        if observation.ok
    )
    return "\n".join(line for action in successful for line in _lines(action))


def _lines(action: Action) -> Iterator[str]:
    match action:
        case Edit():
            yield from (f"--- a/{action.path}", f"+++ b/{action.path}")
            for replacement in action.replacements:
                old, new = replacement.old.splitlines(), replacement.new.splitlines()
                diff = list(unified_diff(old, new, lineterm="", n=3))[2:]
                yield from (_hunk(action.line) if line.startswith("@@") else line for line in diff)
        case Write():
            yield from (f"+++ b/{action.path}", "@@ the whole file @@")
            yield from (f"+{line}" for line in action.content.splitlines())
        case _:
            return


def _hunk(line: int | None) -> str:
    """A header for a part of an edit, which knows at most the line where it begins."""
    return "@@" if line is None else f"@@ from line {line} on @@"
