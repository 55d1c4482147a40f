"""Checks of a search's options. Their errors name the option, its value and what to give."""

from __future__ import annotations

from collections.abc import Sequence


def require_at_least(options: object, **least: float) -> None:
    """Raise ValueError for the first of these options that is below its minimum."""
    for name, bound in least.items():
        if not getattr(options, name) >= bound:
            raise ValueError(f"{name}={getattr(options, name)} is too small: give at least {bound}")


def require_one_of(options: object, **names: Sequence[str]) -> None:
    """Raise ValueError for the first of these options whose value is not one of the allowed names."""
    for name, known in names.items():
        if getattr(options, name) not in known:
            raise ValueError(f"unknown {name} {getattr(options, name)!r}: one of {', '.join(known)}")
