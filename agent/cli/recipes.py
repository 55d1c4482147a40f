"""`ramify recipes`: the published systems that can be run by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agent.recipes import Recipe


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show this one in full.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """List the published systems that have a recipe. With a name, show its paper, its settings, and how it differs from
    the paper."""
    from agent.recipes import everything, named

    if name is not None:
        recipe = named(name)
        lines = [json.dumps(_facts(recipe))] if as_json else _shown(recipe)
    elif as_json:
        lines = [json.dumps([_facts(recipe) for recipe in everything()])]
    else:
        lines = [f"{recipe.name:<16} {recipe.summary}" for recipe in everything()]
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _facts(recipe: Recipe) -> dict[str, object]:
    facts = ("name", "title", "reference", "summary", "kind", "needs", "settings", "differs", "command")
    return {fact: getattr(recipe, fact) for fact in facts}


def _shown(recipe: Recipe) -> Iterator[str]:
    """Yield the lines that describe a recipe: summary, paper, settings as TOML, differences, and commands."""
    from agent.cli.config import as_toml
    from agent.recipes import flattened

    yield f"{recipe.name}: {recipe.summary}"
    yield f"{recipe.title}{f' ({recipe.reference})' if recipe.reference else ''}"
    if settings := flattened(recipe.settings):
        yield "\nSettings:"
        yield from (f"  {key} = {as_toml(value)}" for key, value in settings.items())
    if recipe.differs:
        yield "\nWhat differs:"
        yield from (f"  - {sentence}" for sentence in recipe.differs)
    yield "\nCommand:" if len(recipe.command) == 1 else "\nCommands:"
    yield from (f"  {line}" for line in recipe.command)
