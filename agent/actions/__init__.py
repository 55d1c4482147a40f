"""What a policy may do: the Action union, how each action is applied to a sandbox, and the tools that a model sees.

Invariant: a command's failure is data, returned in the Observation; only a failure of the sandbox itself is raised.
"""

from __future__ import annotations

from agent.actions.application import apply
from agent.actions.calls import invalid, parse
from agent.actions.irreversible import Kind, effect
from agent.actions.tools import BadCall, as_call, schema
from agent.actions.types import (
    Action,
    Debug,
    Edit,
    Effect,
    Invalid,
    Observation,
    Replacement,
    RunTests,
    Search,
    Shell,
    Submit,
    View,
    Write,
)

__all__ = [
    "Action",
    "BadCall",
    "Debug",
    "Edit",
    "Effect",
    "Invalid",
    "Kind",
    "Observation",
    "Replacement",
    "RunTests",
    "Search",
    "Shell",
    "Submit",
    "View",
    "Write",
    "apply",
    "as_call",
    "effect",
    "invalid",
    "parse",
    "schema",
]
