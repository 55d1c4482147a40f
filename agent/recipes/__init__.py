"""Recipes: published systems by name, one TOML file each, with the settings or the commands that make them up.

A recipe is the lowest layer of the settings: all other given settings override it (`agent.config`). This package only
reads files; it does not know the searches and policies.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from agent.errors import ConfigError

__all__ = ["GROUPS", "Check", "Recipe", "everything", "flattened", "named", "names"]

_SUFFIX = ".toml"

GROUPS = {
    "search": "Searching",
    "rollouts": "Comparing and refining rollouts",
    "history": "History and delegation",
    "memory": "Debugging and memory",
    "training": "Training data",
    "evaluation": "Benchmarks and integrity",
}
"""The groups of recipes with their titles, in the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class Check:
    """A property that a system must have, and the tests that show it, as `FILE::NAME`."""

    holds: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A published system as Ramify has it."""

    name: str
    title: str
    """The title of the paper."""
    reference: str
    """Where to find the paper; empty if that is unknown."""
    summary: str
    """What the system does, in one line."""
    group: str
    kind: Literal["search", "command"]
    """`search`: `--recipe NAME` runs it. `command`: it is about data, training or evaluation, and has commands."""
    command: tuple[str, ...]
    """The commands to type."""
    settings: Mapping[str, Any]
    """The settings that it consists of, as in a settings file; empty for a `command`."""
    needs: Literal["", "model", "policies", "memory"]
    """What else the user has to name."""
    differs: tuple[str, ...]
    """What is left out or done differently, one sentence each."""
    checks: tuple[Check, ...]


def names() -> tuple[str, ...]:
    """The names of all recipes, in alphabetical order."""
    listed = (file.name for file in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in listed if name.endswith(_SUFFIX)))


def everything() -> tuple[Recipe, ...]:
    """All recipes, by group and name."""
    order = list(GROUPS)
    return tuple(sorted(map(named, names()), key=lambda recipe: (order.index(recipe.group), recipe.name)))


@cache
def named(name: str) -> Recipe:
    """Return the recipe with this name.

    Raises:
        ConfigError: there is no such recipe.
    """
    known = names()
    if name not in known:
        near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
        meant = f"; did you mean {' or '.join(near)}?" if near else ":"
        raise ConfigError(f"unknown recipe {name!r}{meant} `ramify recipes` lists them all")
    table = tomllib.loads((files(__name__) / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
    return Recipe(
        name=name,
        title=table["title"],
        reference=table.get("reference", ""),
        summary=table["summary"],
        group=table["group"],
        kind=table["kind"],
        command=tuple(table["command"]),
        settings=table.get("settings", {}),
        needs=table.get("needs", ""),
        differs=tuple(table["differs"]),
        checks=tuple(Check(check["holds"], tuple(check["tests"])) for check in table.get("checks", ())),
    )


def flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings by their dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
