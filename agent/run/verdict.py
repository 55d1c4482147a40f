"""The verification of a state's patch, as the journal notes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

VERDICT = "verdict"
"""The key of the note."""


class VerdictNote(TypedDict, total=False):
    """What `agent.evaluate.verification.Verdict.to_note` writes. Earlier versions wrote fewer keys."""

    solved: bool
    improved: bool
    applied: bool
    invalid: bool
    patch: str
    """The blob of the patch."""
    why: str
    """Why the patch was refused; empty if it was not."""
    final: Mapping[str, int]
    """How many tests passed and failed."""
    broken: list[str]
    flaky: list[str]
    remarks: list[str]
    scope: str
    """Which tests the verdict rests on; empty: all tests."""
