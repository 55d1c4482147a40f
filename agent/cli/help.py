"""The layout of help: headings over groups of commands, one sentence for each, and an example at the end."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["EXIT_CODES", "HELP", "example", "new_app"]

EXIT_CODES = """\b
Exit codes:
  0            solved or submitted
  1            finished without such a patch
  2            an argument is wrong; --test cannot be run, or --setup fails
  3            a setting, a key or a model is wrong or missing
  4            the model provider refused or failed
  5            the policy failed
  6            the sandbox failed, or Ramify did
  124          not solved within the time
  130, 143     interrupted, terminated"""


HELP = {"help_option_names": ["-h", "--help"]}
"""Settings of a command outside a group."""


class Group(TyperGroup):
    """A group whose help lists its commands under headings, each with the first sentence of its own help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands."""
        rows: dict[str, list[tuple[str, str]]] = {}
        width = max(map(len, self.list_commands(ctx)), default=0)
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if not command.hidden:
                heading = command.rich_help_panel
                rows.setdefault(heading if isinstance(heading, str) else "Commands", []).append(
                    (f"{name:<{width}}", _first_sentence(command.help or ""))
                )
        for heading, listed in rows.items():
            with formatter.section(heading):
                formatter.write_dl(listed)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]


def example(*commands: str) -> str:
    """The end of a command's help: examples to copy, which are not wrapped."""
    lines = "\n".join(f"  {command}" for command in commands)
    return f"\b\n{'Example' if len(commands) == 1 else 'Examples'}:\n{lines}"


def new_app(**options: Any) -> typer.Typer:
    """A group of commands: help with `-h` too, without colours, and our own errors."""
    return typer.Typer(
        cls=Group,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP,
        **options,
    )
