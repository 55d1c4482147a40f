"""`ramify config`: prints the settings and where each comes from."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.help import example, new_app
from agent.cli.options import Config

if TYPE_CHECKING:
    from agent.config import Origin


app = new_app(help="Show the settings.", no_args_is_help=True)


@app.callback()
def config() -> None:
    """Show the settings."""


@app.command(epilog=example("ramify config show --origin"))
def show(
    config: Config = None,
    origin: Annotated[
        bool, typer.Option("--origin", help="Also show where each value comes from: a file, -c, or the default.")
    ] = False,
) -> None:
    """Print all settings as TOML for `-c FILE`. Settings without a value are comments."""
    from agent.config import origins, split

    sys.stdout.writelines(f"{line}\n" for line in _lines(origins(*split(config or ())), origin))


def _lines(settings: list[Origin], origin: bool) -> Iterator[str]:
    lines = [f"# {s.key} is not set" if s.value is None else f"{s.key} = {as_toml(s.value)}" for s in settings]
    width = max(map(len, lines))
    for line, setting in zip(lines, settings, strict=True):
        yield f"{line:<{width}}  # {setting.origin}" if origin else line


def as_toml(value: Any) -> str:
    """Return a JSON value as inline TOML with quoted keys."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
