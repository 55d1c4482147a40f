"""The layout of the help texts: commands grouped under headings, a sentence for each, and examples at the end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from agent.cli.options import PARAMETERS
from agent.errors import OptionRefused, UsageError

EXIT_CODES = """\b
Exit codes:
  0            solved or submitted
  1            finished without a solved or submitted patch
  2            an argument is wrong; the tests cannot be run, or --setup fails
  3            a setting, a key or a model is wrong or missing
  4            the model provider refused or failed
  5            the policy failed
  6            the sandbox failed, or Ramify itself failed
  124          not solved within the time
  130, 143     interrupted, terminated"""


HELP = {"help_option_names": ["-h", "--help"]}
"""Context settings that add `-h` to a command."""


class Group(TyperGroup):
    """A group whose help lists its commands under headings, each with the first sentence of its own help. An error
    about a setting names the option that set it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `help COMMAND` as `COMMAND --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        typed = list(ctx.args)
        try:
            return super().invoke(ctx)
        except OptionRefused as error:
            command = self.get_command(ctx, ctx.invoked_subcommand)
            option = _as_typed(command, error.key, typed)
            value = f"{error.value:g}" if isinstance(error.value, float) else error.value
            raise UsageError(f"{option} {value} {error.reason} (setting `{error.key}`)") from error
        except typer.BadParameter as error:
            problems: list[Any] = getattr(error.__cause__, "errors", list)()  # of pydantic
            if problems:
                reason = problems[0]["msg"].removeprefix("Input ").partition(", unable to parse")[0]
                error.message = f"{problems[0]['input']!r} {reason}"  # typer's own message does not name the value
            raise

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


def _as_typed(command: Any, key: str, arguments: Sequence[str]) -> str:
    """Return the name under which the arguments give the option for a setting; its long name if they do not."""
    names: list[str] = next(
        param.opts for param in command.params if f"{key}.".startswith(f"{PARAMETERS.get(param.name, param.name)}.")
    )
    given = (name for text in arguments for name in names if text.partition("=")[0] == name)
    return next(given, next(name for name in names if name.startswith("--")))


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0]


def example(*commands: str) -> str:
    """Return the end of a command's help: examples to copy, which are not wrapped."""
    lines = "\n".join(f"  {command}" for command in commands)
    return f"\b\n{'Example' if len(commands) == 1 else 'Examples'}:\n{lines}"


def new_app(**options: Any) -> typer.Typer:
    """Return a group of commands: `-h` works too, help has no colours, and errors are not reformatted by typer."""
    return typer.Typer(
        cls=Group, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=HELP, **options
    )
