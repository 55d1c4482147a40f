"""Settings: defaults, TOML files and `key=value` overrides, folded into one typed value.

Law: a key that means nothing is an error, never ignored. Options of a policy, a search or a value belong to its
constructor and are checked there (`agent.build`).
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from agent.actions.irreversible import Kind
from agent.errors import ConfigError
from sandboxes import Limits

__all__ = [
    "BudgetSettings",
    "Choice",
    "MeasureSettings",
    "ModelSettings",
    "SandboxSettings",
    "Settings",
    "load",
    "restore",
    "split",
]

_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
_CHOICES = ("policy", "search", "value")
"""Sections that name an implementation; every other key of theirs is an option of it."""


class Choice(BaseModel):
    """An implementation by name, and the keywords of its constructor."""

    model_config = _STRICT
    name: str
    options: dict[str, Any] = {}


class SandboxSettings(BaseModel):
    """Where actions run."""

    model_config = _STRICT
    kind: Literal["auto", "docker", "commit", "namespace"] = "auto"
    """`docker` is `commit` where the image or the engine allows no better; `commit` is that in any case."""
    image: str | None = None
    environment: tuple[str, ...] = ()
    """Commands that build what the tests need without the workspace; cached across runs."""
    setup: tuple[str, ...] = ()
    """Commands run once in the workspace, with the network on."""
    env: dict[str, str] = {}
    limits: Limits = Limits()
    allow: tuple[Kind, ...] = ()
    """Kinds of shell commands that may be run although they change something for good: push, publish, deploy, send,
    migrate, destroy. Others are refused."""
    paranoid: bool = False
    """Compare every fork with a digest of what was frozen, and stop where it differs. Slower: files are read again."""


class BudgetSettings(BaseModel):
    """What a run may spend; without a key, no limit."""

    model_config = _STRICT
    max_nodes: Annotated[int, Field(ge=1)] | None = 1000
    max_measurements: Annotated[int, Field(ge=1)] | None = None
    max_calls: Annotated[int, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    max_usd: Annotated[float, Field(ge=0)] | None = 3.0
    max_seconds: Annotated[float, Field(gt=0)] | None = 3600.0


class ModelSettings(BaseModel):
    """How a model is spoken to."""

    model_config = _STRICT
    base_url: str | None = None
    """An OpenAI-compatible endpoint; None: the provider that the model's name says."""
    price: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=2, max_length=4)] | None = None
    """Dollars per million tokens, where the price list does not know the model: of the prompt, of the completion, and,
    where they differ, of the prompt when read from a cache and when written to one."""
    temperature: Annotated[float, Field(ge=0)] | None = None
    body: dict[str, Any] = {}
    """Further fields of each request, such as `max_tokens`, `tool_choice` or vLLM's `structured_outputs`."""
    tool_calls: Literal["auto", "native", "text"] = "auto"
    """`native`: as the provider's interface has them; `text`: in tags in what the model says, for models without tools;
    `auto`: as the model is known, or turns out, to take them."""
    stream: bool = True
    """Answers come in pieces, so that one that stalls is noticed early; false for a server that cannot."""
    connect_s: Annotated[float, Field(gt=0)] = 10.0
    first_token_s: Annotated[float, Field(gt=0)] = 300.0
    """Seconds from the question to the first piece of the answer; a model may think for minutes before it."""
    idle_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds between two pieces."""
    total_s: Annotated[float, Field(gt=0)] = 600.0
    """Seconds from the question to the end of the answer."""
    max_concurrent: Annotated[int, Field(ge=1)] | None = None
    """Questions to one provider at the same time, all workers and runs of this process together."""
    context_tokens: Annotated[int, Field(ge=2000)] | None = None
    """How much the model can read, where the price list does not know it; above it the oldest results are left out."""


class MeasureSettings(BaseModel):
    """How tests are run."""

    model_config = _STRICT
    baseline_runs: Annotated[int, Field(ge=1)] | None = None
    """Runs of the base state's tests; those that do not end the same way every time are set aside. None: two where
    the tests are quick, else one."""


class Settings(BaseModel):
    """All that can be set, with its defaults."""

    model_config = _STRICT
    policy: Choice = Choice(name="mutate")
    """`mutate`, or the name of a model. `policy = ["mutate", "openai/x"]` names this one and a panel."""
    panel: tuple[Choice, ...] = ()
    """Further policies on the same tree: names, or tables with a `name` and options."""
    search: Choice = Choice(name="auto")
    """An algorithm by name. Some have other defaults for `mutate` (`agent.search.registry.SINGLE_EDITS`)."""
    value: Choice = Choice(name="tests")
    """What a state is worth, by name. All but `tests` ask a model: `model`, or else the policy's."""
    sandbox: SandboxSettings = SandboxSettings()
    budget: BudgetSettings = BudgetSettings()
    model: ModelSettings = ModelSettings()
    measure: MeasureSettings = MeasureSettings()
    gate: Literal["none", "strict"] = "none"
    """`strict`: only states are expanded in which a test passes that failed in their parent, and none the other way."""
    workers: Annotated[int, Field(ge=1)] = 1
    """Expansions at the same time; with more than one, the order of nodes depends on the clock."""
    seed: int = 0


def load(
    files: Sequence[Path] = (), overrides: Sequence[str] = (), flags: Mapping[str, object] | None = None
) -> Settings:
    """Defaults, then files, then overrides (`budget.max_nodes=50`, a TOML value or a bare word), then flags by dotted
    key; later ones win. A layer that names another policy, search or value drops the options of the one before.

    Raises:
        ConfigError: a file that cannot be read, an unknown key, a value of the wrong type.
    """
    return _folded(_layers(files, overrides, flags or {}))


def restore(
    dumped: Mapping[str, Any],
    files: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """The settings of a run, from what its journal says, and what is changed of them, as for `load`.

    Raises:
        ConfigError: they were written by a version that knew other settings; or as `load`.
    """
    return _folded([("the run's journal", dict(dumped)), *_layers(files, overrides, flags or {})])


def split(items: Sequence[str]) -> tuple[list[Path], list[str]]:
    """What the command line's `-c` was given: files, and overrides."""
    files = [Path(item) for item in items if "=" not in item or Path(item).is_file()]
    return files, [item for item in items if Path(item) not in files]


def _folded(layers: Iterable[tuple[str, dict[str, Any]]]) -> Settings:
    merged: dict[str, Any] = {}
    origins: dict[tuple[str, ...], str] = {}
    for origin, layer in layers:
        for keys, value in _leaves(_spread(layer)):
            _put(merged, keys, value)
            origins[keys] = origin
    return _validated(merged, origins)


def _layers(
    files: Sequence[Path], overrides: Sequence[str], flags: Mapping[str, object]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in files:
        yield str(path), _read(path)
    for text in overrides:
        yield f"-c {text}", _override(text)
    for key, value in flags.items():
        yield "the command line", _nest(key, value)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the settings file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _override(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not all(key.strip().split(".")):
        raise ConfigError(f"-c {text}: neither a file nor key=value")
    return _nest(key.strip(), _toml_value(value.strip()))


def _toml_value(text: str) -> object:
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return table["value"] if len(table) == 1 else text


def _nest(key: str, value: object) -> dict[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _spread(layer: dict[str, Any]) -> dict[str, Any]:
    """`search = "mcts"` and `[search] name = "mcts" c = 1.4` in the form that `Choice` has; a list of policies as one
    policy and a panel."""
    spread = dict(layer)
    if isinstance(policies := spread.get("policy"), list) and policies:
        spread["policy"], *spread["panel"] = policies
    if isinstance(panel := spread.get("panel"), list):
        spread["panel"] = [_choice(each) for each in panel]
    return spread | {section: _choice(spread[section]) for section in _CHOICES if section in spread}


def _choice(value: object) -> object:
    match value:
        case str(name):
            return {"name": name}
        case dict(table):
            options = {k: v for k, v in table.items() if k not in ("name", "options")}
            options |= table.get("options", {})
            named = {"name": table["name"]} if "name" in table else {}
            return named | ({"options": options} if options else {})
    return value


def _leaves(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value and above[1:] != ("options",):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _put(merged: dict[str, Any], keys: tuple[str, ...], value: object) -> None:
    section = merged
    for key in keys[:-1]:
        below = section.setdefault(key, {})
        if not isinstance(below, dict):
            below = section[key] = {}
        section = below
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
        raise ConfigError(_explain(error.errors(include_url=False)[0], origins)) from error


def _explain(problem: ErrorDetails, origins: Mapping[tuple[str, ...], str]) -> str:
    keys = tuple(str(part) for part in problem["loc"])
    origin = next((o for k, o in origins.items() if k[: len(keys)] == keys[: len(k)]), "the settings")
    key = ".".join(keys)
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"unknown setting `{key}` in {origin}; did you mean `{_nearest(key)}`?"
    expected = problem["msg"].removeprefix("Input ")
    return f"`{key}` in {origin} is {problem['input']!r}, but {expected}"


def _nearest(key: str) -> str:
    def likeness(candidate: str) -> float:
        pairs = ((key, candidate), (key.rpartition(".")[2], candidate.rpartition(".")[2]))
        return max(difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)

    return max(_known_keys(Settings().model_dump()), key=likeness)


def _known_keys(table: Mapping[str, Any]) -> Iterator[str]:
    for keys, _ in _leaves(table):
        yield keys[0]
        yield ".".join(keys[:1] if keys[0] in _CHOICES else keys)
