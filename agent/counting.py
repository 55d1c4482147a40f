"""Formats counts, lists and values for people."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, one: str, more: str = "") -> str:
    """Return a number with its noun. `more` is the plural if it is not `one` with an s."""
    return f"{number} {one if number == 1 else more or one + 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first `most` names, joined, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def shown(value: object, most: int) -> str:
    """Return a value as Python writes it, cut to `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."
