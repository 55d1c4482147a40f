"""Steps back in rows: the calls that undo the changes of turns, or repeat them.

Invariant: the calls of a row, carried out in order, lead to the files that its states had.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from agent.actions import Action, Edit, Observation, Shell, Write
from agent.actions.excerpt import excerpt
from agent.learning.export.turns import Turn, as_template
from agent.models import Message
from agent.policy.chat.dialects import ToolDialect
from agent.run.tree.node import Node

NOTES_BYTES = 400
CHANGES = (Edit, Write, Shell)
"""Actions that may change a file."""


def before_the_end(mistaken: list[Turn]) -> list[Turn]:
    """The turns without a last one that only submits: nothing follows an accepted `submit`."""
    if mistaken[-1].step.submission and not any(isinstance(a, CHANGES) for a in mistaken[-1].step.actions):
        return mistaken[:-1]
    return mistaken


def undone(mistaken: Sequence[Turn]) -> tuple[Action, ...] | str:
    """The actions that undo the changes of some turns, the last one first; or the reason why they cannot be undone."""
    undoing: list[Action] = []
    for turn in mistaken:
        if turn.step.submission:
            return "the worse path ends with a change and a submit in one answer"
        if len(turn.step.actions) != len(turn.step.observations):
            return "not all actions of the worse path were carried out"
        for action, seen in zip(turn.step.actions, turn.step.observations, strict=True):
            undo = _undo(action, seen)
            if isinstance(undo, str):
                return undo
            undoing += [undo] if undo else []
    return tuple(reversed(undoing))


def done_again(turns: Sequence[Turn]) -> tuple[Action, ...] | str:
    """The actions that repeat the changes of some turns; or the reason why they cannot be repeated."""
    pairs = [pair for turn in turns for pair in zip(turn.step.actions, turn.step.observations, strict=False)]
    if any(isinstance(action, Shell) and not (seen.refused or seen.unchanged) for action, seen in pairs):
        return "going back would repeat a shell command that changed files"
    return tuple(action for action, seen in pairs if isinstance(action, (Edit, Write)) and seen.ok)


def _undo(action: Action, seen: Observation) -> Action | str | None:
    """The action that undoes another; None if that changed nothing; a text that says why no such action is known."""
    match action:
        case Shell() if not (seen.refused or seen.unchanged):
            return "the worse path ran a shell command that changed files"
        case Edit() | Write() if not seen.ok:
            return None
        case Edit() | Write() if seen.text.startswith("Created "):
            return Shell(f"rm {quote(action.path)}")
        case Edit() | Write() if seen.undo:
            return seen.undo
        case Edit() if action.old and action.new and not (action.replace_all or action.more):
            return action.inverse
        case Edit() | Write():
            return "the run does not record how to undo a change of the worse path"
        case _:
            return None


def notes_of(node: Node) -> str:
    """The first line of the notes about a state."""
    return excerpt(node.evaluation.notes.partition("\n")[0], NOTES_BYTES)[0].strip()


def carried_out(name: str, text: str, actions: Sequence[Action], form: ToolDialect) -> tuple[Message, ...]:
    """An answer with this text and these actions as calls, and the results of the calls. `name` distinguishes its calls
    from others."""
    answer = form.render_turn(name, text, actions)
    return as_template([answer, *form.results(answer, actions, list(map(_result, actions)))])


def _result(action: Action) -> str:
    match action:
        case Edit():
            return f"Edited {action.path}."
        case Write():
            return f"Wrote {action.path}."
        case _:
            return "exit code: 0\n(no output)"
