"""Efforts: how much is spent on an issue, in four steps. An effort is a layer of settings below all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from agent.errors import ConfigError

__all__ = ["EFFORTS", "Effort", "settings_of"]

Effort = Literal["low", "medium", "high", "max"]

EFFORTS: dict[Effort, Mapping[str, Any]] = {
    "low": {"search": {"name": "best_of_n", "options": {"n": 1}}},
    "medium": {"value": {"name": "judge"}},
    "high": {"rollouts": 4},
    "max": {"rollouts": 4, "rounds": 2, "search": {"name": "mcts"}, "value": {"name": "judge"}},
}
"""`low`: one line of work. `medium`: one line, whose states a model judges, and others from
the best state if it fails. `high`: four independent lines, of which the best is chosen. `max`: lines that branch off
where a tree search finds it best, the choice among them, and a second round if the first leaves doubt."""


def settings_of(name: object) -> Mapping[str, Any]:
    """The settings of an effort.

    Raises:
        ConfigError: there is no such effort.
    """
    for effort, settings in EFFORTS.items():
        if effort == name:
            return settings
    raise ConfigError(f"unknown effort {name!r}: one of {', '.join(get_args(Effort))}")
