"""The small part of a test that a quick run keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import hypothesis
import pytest


def slow_but(quick: Sequence[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrized test, all but the quick ones marked slow. A tuple has a value for each parameter."""
    every = [case if isinstance(case, tuple) else (case,) for case in cases]
    kept = [case if isinstance(case, tuple) else (case,) for case in quick]
    return [pytest.param(*case, marks=() if case in kept else pytest.mark.slow) for case in every]


def examples(whole: int, quick: int = 1) -> int:
    """How many examples of a law are drawn whose every example takes seconds."""
    return quick if hypothesis.settings.get_current_profile_name() == "quick" else whole
