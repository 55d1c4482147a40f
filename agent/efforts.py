"""Efforts: four levels of how much is spent on an issue. An effort is a layer of settings below all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Effort = Literal["low", "medium", "high", "max"]

EFFORTS: Mapping[str, Mapping[str, Any]] = {
    "low": {"search": {"name": "best_of_n", "options": {"n": 1}}},
    "medium": {"value": {"name": "judge"}},
    "high": {"rollouts": 4},
    "max": {"rollouts": 4, "rounds": 2, "search": {"name": "reproduce"}, "value": {"name": "judge"}},
}
"""`low`: one line of work. `medium`: one line, whose states a model judges, and further lines from the best state if it
fails. `high`: four independent lines, of which the best is chosen. `max`: lines that begin with a test that shows the
issue, two repairs for each test, a choice among them, and a second round if the first leaves doubt."""
