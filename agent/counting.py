"""Counts as people read them: the number with its noun, in the singular for one."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, one: str, more: str = "") -> str:
    """A number with its noun; `more` is the plural if it is not `one` with an s."""
    return f"{number} {one if number == 1 else more or one + 's'}"
