"""Applications of the command line that are alike."""

from __future__ import annotations

from typing import Any

import typer

__all__ = ["new_app"]


def new_app(**options: Any) -> typer.Typer:
    """A group of commands, or one command: help with `-h` too, without colours, and our own errors."""
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )
