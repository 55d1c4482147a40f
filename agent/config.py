"""Configuration: combines defaults, an effort, a recipe, TOML files and `key=value` overrides into one typed value.

Invariant: an unknown key is an error, never ignored. Options of a policy, a search or a value belong to its constructor
and are checked there (`agent.build.composition`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.efforts import EFFORTS
from agent.errors import ConfigError
from agent.recipes import named
from agent.refusal import COMMAND_LINE, refusal
from agent.settings import Settings, renamed

_CHOICES = ("policy", "search", "value")
"""Sections that name an implementation; their other keys are its options."""
_READ = ("instructions", "prompts")
"""Settings that are given as a path and hold what was read from it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One setting and where it comes from."""

    key: str
    """The dotted key."""
    value: Any
    """The value, as JSON."""
    origin: str
    """An effort, a recipe, a file, `-c key=value`, the command line, or `default`."""


def load(
    files: Sequence[Path] = (), overrides: Sequence[str] = (), flags: Mapping[str, object] | None = None
) -> Settings:
    """Combine defaults, the effort and the recipe that any later layer names, files, overrides (`budget.max_nodes=50`,
    with a TOML value or a bare word) and flags by dotted key, in this order; later layers win. A layer that names
    another policy, search or value drops the options of the previous one.

    Raises:
        ConfigError: a file that cannot be read, an unknown key or recipe, a value of the wrong type.
        OptionRefused: a flag's value of the wrong type.
    """
    return _folded(_layers(files, overrides, flags or {}))[0]


def origins(files: Sequence[Path] = (), overrides: Sequence[str] = ()) -> list[Origin]:
    """Return all settings that `load` returns, each with its origin.

    Raises:
        ConfigError: as `load`.
    """
    settings, sources = _folded(_layers(files, overrides, {}))
    leaves = _leaves(_as_given(settings.model_dump(mode="json")))
    return [Origin(".".join(keys), value, _origin(keys, sources) or "default") for keys, value in leaves]


def restore(
    dumped: Mapping[str, Any],
    files: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings of a run from its journal, with changes as for `load`.

    Raises:
        ConfigError: they were written by a version that knew other settings; or as `load`.
    """
    return _folded([("the run's journal", dict(dumped)), *_layers(files, overrides, flags or {})])[0]


def given(items: Sequence[str], flags: Mapping[str, object]) -> Settings:
    """Return the settings of a command line: the values of `-c`, overridden by the flags that are not None.

    Raises:
        ConfigError: as `load`.
    """
    return load(*split(items), {key: value for key, value in flags.items() if value is not None})


def naming(policies: Sequence[str]) -> dict[str, object]:
    """Return flags that name these policies. A single policy keeps the options that a file gives it; several policies
    replace the panel."""
    if len(policies) == 1:
        return {"policy.name": policies[0], "panel": []}
    return {"policy": list(policies)} if policies else {}


def split(items: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Divide the values of `-c` into files and overrides."""
    files = [Path(item) for item in items if "=" not in item or Path(item).is_file()]
    return files, [item for item in items if Path(item) not in files]


def _folded(layers: Iterable[tuple[str, dict[str, Any]]]) -> tuple[Settings, dict[tuple[str, ...], str]]:
    """Return the settings, and by key the layer that set each."""
    merged: dict[str, Any] = {}
    origins: dict[tuple[str, ...], str] = {}
    for origin, layer in layers:
        for keys, value in _leaves(_spread(layer)):
            _put(merged, keys, value)
            origins[keys] = origin
    return _validated(merged, origins), origins


def _layers(
    files: Sequence[Path], overrides: Sequence[str], flags: Mapping[str, object]
) -> list[tuple[str, dict[str, Any]]]:
    """Return the layers, lowest first: the effort, the recipe, and what the user gives. The last layer that names an
    effort or a recipe decides which."""
    layers = list(_given(files, overrides, flags))
    effort = str(_last("effort", layers))
    below = [(f"the effort {effort}", dict(EFFORTS[effort]))] if effort in EFFORTS else []
    return [*below, *_recipe(_last("recipe", layers)), *layers]


def _last(key: str, layers: Sequence[tuple[str, dict[str, Any]]]) -> object:
    """Return the value of a top-level key in the last layer that has it."""
    return next((layer[key] for _, layer in reversed(layers) if layer.get(key)), None)


def _recipe(name: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the settings of a recipe. Raises ConfigError if there is no such recipe, or if it has commands instead."""
    if not isinstance(name, str):
        return
    recipe = named(name)
    if recipe.kind == "command":
        raise ConfigError(
            f"the recipe {name!r} is not a search but a sequence of commands: run "
            f"{' and then '.join(f'`{line}`' for line in recipe.command)}; "
            f"see `ramify recipes {name}`"
        )
    yield f"the recipe {name}", dict(recipe.settings)


def _given(
    files: Sequence[Path], overrides: Sequence[str], flags: Mapping[str, object]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in files:
        yield str(path), _read(path)
    for text in overrides:
        yield f"-c {text}", _override(text)
    for key, value in flags.items():
        yield COMMAND_LINE, _nest(key, value)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the settings file {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _override(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not all(key.strip().split(".")):
        raise ConfigError(f"-c {text}: neither a settings file nor KEY=VALUE; name a TOML file, or write KEY=VALUE")
    return _nest(key.strip(), _toml_value(value.strip()))


def _toml_value(text: str) -> object:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text


def _nest(key: str, value: object) -> dict[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _spread(layer: dict[str, Any]) -> dict[str, Any]:
    """Convert `search = "mcts"` and `[search] name = "mcts" c = 1.4` to the form of `Choice`, and a list of policies to
    one policy and a panel."""
    spread = dict(layer)
    if isinstance(policies := spread.get("policy"), list) and policies:
        spread["policy"], *spread["panel"] = policies
    if isinstance(panel := spread.get("panel"), list):
        spread["panel"] = [_choice(policy) for policy in panel]
    return spread | {section: _choice(spread[section]) for section in _CHOICES if section in spread}


def _choice(value: object) -> object:
    match value:
        case str(name):
            return {"name": name}
        case dict(table):
            options = {k: v for k, v in table.items() if k not in ("name", "options")}
            options |= table.get("options", {})
            named = {"name": table["name"]} if "name" in table else {}
            return named | ({"options": renamed(options)} if options else {})
    return value


def _leaves(table: Mapping[str, Any], parents: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value and parents[1:] != ("options",):
            yield from _leaves(value, (*parents, key))
        else:
            yield (*parents, key), value


def _put(merged: dict[str, Any], keys: tuple[str, ...], value: object) -> None:
    section = merged
    for key in keys[:-1]:
        subsection = section.setdefault(key, {})
        if not isinstance(subsection, dict):
            subsection = section[key] = {}
        section = subsection
    if value == {}:
        section.setdefault(keys[-1], value)
        return
    if keys[0] in _CHOICES and keys[1:] == ("name",) and section.get("name", value) != value:
        section.pop("options", None)
    section[keys[-1]] = value


def _validated(merged: dict[str, Any], origins: Mapping[tuple[str, ...], str]) -> Settings:
    for section in _CHOICES:
        if isinstance(merged.get(section), dict):
            merged[section] = {"name": Settings.model_fields[section].default.name} | merged[section]
    try:
        return Settings.model_validate_json(json.dumps(merged, default=str))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        origin = _origin(tuple(map(str, problem["loc"])), origins) or "the settings"
        raise refusal(problem, Settings, origin) from error


def _as_given(dumped: dict[str, Any]) -> dict[str, Any]:
    """Replace texts that were read from a file by its path."""
    read = {key: dumped[key]["path"] for key in _READ if dumped[key] and dumped[key]["path"]}
    return dumped | read


def _origin(keys: tuple[str, ...], origins: Mapping[tuple[str, ...], str]) -> str | None:
    """Return the layer that set a key, a key below it, or else the table around it; None: no layer did."""
    related = [other for other in origins if other[: len(keys)] == keys[: len(other)]]
    return origins[max(related, key=len)] if related else None
