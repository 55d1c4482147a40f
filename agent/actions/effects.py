"""How far an action can reach.

A shell command counts as reaching the sandbox only, unless it is recognisably made to change something outside of it
for good (`agent.actions.irreversible`).
"""

from __future__ import annotations

from typing import assert_never

from agent.actions.irreversible import irreversible
from agent.actions.types import Action, Debug, Edit, Effect, Invalid, RunTests, Search, Shell, Submit, View, Write

__all__ = ["effect"]


def effect(action: Action) -> Effect:
    """The furthest that the action is meant to reach."""
    match action:
        case View() | Search() | RunTests() | Debug() | Submit() | Invalid():
            return Effect.READ_ONLY
        case Edit() | Write():
            return Effect.WORKSPACE
        case Shell():
            return Effect.IRREVERSIBLE if irreversible(action.command) else Effect.MACHINE
        case _:
            assert_never(action)
