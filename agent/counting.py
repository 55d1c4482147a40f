"""Counts, lists and values as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, one: str, more: str = "") -> str:
    """A number with its noun; `more` is the plural if it is not `one` with an s."""
    return f"{number} {one if number == 1 else more or one + 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """At most so many names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def shown(value: object, most: int) -> str:
    """A value as Python writes it, at most so many characters of it."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."
