"""Options that several commands share, and the settings that they set."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.errors import UsageError

if TYPE_CHECKING:
    from agent.settings import Settings


Interface = Annotated[
    list[str] | None,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE|KEY=VALUE",
        help="Settings file, or one setting of the model such as model.base_url=URL; repeatable, later ones win.",
    ),
]
Test = Annotated[
    str | None,
    typer.Option(
        "--test",
        "--test-cmd",
        metavar="CMD",
        help="Command that runs the tests, from the root. Default: detected from the repository's files.",
    ),
]
TestFramework = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The kind of tests: pytest, go, cargo, jest, ... Default: detected from CMD."),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--model",
        "--policy",
        metavar="MODEL",
        help="The policy that proposes edits: a model, or mutate, which needs none; repeatable: all work on one tree.",
    ),
]
GoalTests = Annotated[
    list[str] | None,
    typer.Option(
        "--goal-test", "--goal", metavar="ID", help="A failing test that has to pass; repeatable. Default: not known."
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Use the settings of a published system (`ramify recipes`); other options override them."
    ),
]
EffortName = Annotated[
    str | None,
    typer.Option(
        "--effort", metavar="low|medium|high|max", help="How much to spend on an issue; other options override it."
    ),
]
SearchName = Annotated[str | None, typer.Option(metavar="NAME", help="The algorithm that selects states to expand.")]
ValueName = Annotated[
    str | None, typer.Option(metavar="tests|judge|debate|checklist|blend|prm", help="The method that values states.")
]
Paranoid = Annotated[
    bool, typer.Option("--paranoid", help="Compare every fork with its snapshot, and stop if they differ.")
]
ModelPrice = Annotated[
    str | None,
    typer.Option(metavar="IN,OUT[,CACHED]", help="Dollars per million tokens, for models without a listed price."),
]
SandboxKind = Annotated[str | None, typer.Option(metavar="auto|docker|commit|namespace", help="Where commands run.")]
Image = Annotated[str | None, typer.Option(metavar="IMAGE", help="Docker image of the sandbox.")]


def _environment(path: Path | None) -> Path | None:
    """Return the absolute path of an environment, given its directory or its Python program."""
    if path is None:
        return None
    place = Path(os.path.abspath(path.parent.parent if path.is_file() else path))  # noqa: PTH100  # links stay
    if not (place / "bin" / "python").exists():
        raise UsageError(f"--python {path} is not a Python environment: {place / 'bin' / 'python'} does not exist")
    return place


Python = Annotated[
    Path | None,
    typer.Option(
        "--python",
        metavar="DIR",
        callback=_environment,
        help="The environment in which the tests run. Default: the active one, else the checkout's .venv.",
    ),
]
Setup = Annotated[
    list[str] | None, typer.Option(metavar="CMD", help="Command to run once in the sandbox, with network; repeatable.")
]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE|KEY=VALUE",
        help="Settings file in TOML, or one setting; repeatable, later ones win.",
    ),
]
Instructions = Annotated[
    Path | None,
    typer.Option("--instructions", metavar="FILE", help="Your own instructions, for the model's system prompt."),
]
MaxNodes = Annotated[
    int | None, typer.Option("--max-states", "--max-nodes", metavar="N", help="Maximum number of states.")
]
MaxUsd = Annotated[
    float | None,
    typer.Option("-l", "--max-usd", "--cost-limit", metavar="N", help="Maximum number of dollars to spend on models."),
]
MaxTokens = Annotated[
    int | None, typer.Option(metavar="N", help="Maximum number of tokens, prompt and completion together.")
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(metavar="N", help="Seconds after which no new step begins; the verification takes additional time."),
]
Workers = Annotated[
    int | None, typer.Option("-w", "--workers", metavar="N", help="Number of expansions at the same time.")
]
Rollouts = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Finish N independent attempts and choose the best patch.")
]
Rounds = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Repeat in N rounds; each learns from the earlier ones.")
]
Out = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="RUN", help="Directory of the run; it must not exist.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of the patch.")]
PatchOut = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the patch to this file.")]
SummaryMd = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Append a summary in Markdown to this file, such as $GITHUB_STEP_SUMMARY."),
]
Apply = Annotated[
    bool, typer.Option("--apply", help="Apply a solved or submitted patch to the checkout, whole or not at all.")
]


def _kinds_of_patches(names: list[str] | None) -> list[str] | None:
    if unknown := [name for name in names or () if name != "declared"]:
        raise UsageError(f"--accept {unknown[0]}: there is no such kind of patch; the only kind is `declared`")
    return names


Accept = Annotated[
    list[str] | None,
    typer.Option(
        metavar="declared",
        callback=_kinds_of_patches,
        help="Also apply a patch that breaks tests which the model declares to be wrong.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit with code 1 if the patch breaks tests, even if the model declares them wrong."),
]
GoalFailing = Annotated[bool, typer.Option("--goal-failing", help="Use all tests that fail now as goals.")]
FromJunit = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="JUnit XML report of a failed build; the tests that failed in it are the goals."),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Random seed; with one worker, the same seed gives the same run.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only the result and errors, no progress or summary.")]


def _log(verbose: bool) -> None:
    """Show messages of level info and above from Ramify's own packages."""
    for name in ("agent", "agent.build.sandboxes", "agent.task", "benchmarks", "sandboxes") if verbose else ():
        logging.getLogger(name).setLevel(logging.INFO)


Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", callback=_log, expose_value=False, help="Also print the log.")
]

_SETTINGS = {
    "effort": "effort",
    "recipe": "recipe",
    "test_framework": "measure.framework",
    "search": "search.name",
    "value": "value.name",
    "sandbox": "sandbox.kind",
    "image": "sandbox.image",
    "python": "sandbox.env.VIRTUAL_ENV",
    "setup": "sandbox.setup",
    "paranoid": "sandbox.paranoid",
    "instructions": "instructions",
    "max_nodes": "budget.max_nodes",
    "max_usd": "budget.max_usd",
    "max_tokens": "budget.max_tokens",
    "max_seconds": "budget.max_seconds",
    "memory": "memory.path",
    "workers": "workers",
    "rollouts": "rollouts",
    "rounds": "rounds",
    "delegate": "delegate",
    "seed": "seed",
}
"""The command parameters that set a setting, with its dotted key."""

PARAMETERS = {**_SETTINGS, "model": "policy", "model_price": "model.price"}
"""All parameters that set a setting, including those that `settings_of` handles separately."""


def require(option: str, name: str) -> None:
    """Raise UsageError if there is no search, value or recipe of this name."""
    from agent.evaluate.value.registry import VALUES
    from agent.recipes import names
    from agent.search.registry import SEARCHES

    known = {"search": tuple(SEARCHES), "value": tuple(VALUES), "recipe": names()}[option]
    if name not in known:
        near = get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"--{option} {name}: {meant}choose one of {', '.join(known)}")


def settings_of(parameters: Mapping[str, Any], *config: str) -> Settings:
    """Return the settings of a command from the parameters of its context: `-c`, then `config`, then the models and the
    other options; later ones win. Options that were not given and parameters that are not settings are ignored.

    Raises:
        agent.errors.ConfigError: as in `agent.config.load`.
        agent.errors.UsageError: the value of an option is wrong, or --python was given although the tests run in an
            image.
    """
    for name in ("search", "value", "recipe"):
        if chosen := parameters.get(name):
            require(name, chosen)
    from agent.config import given, naming
    from agent.models.prices import parse_price

    flags = {key: parameters.get(name) for name, key in _SETTINGS.items()}
    kept = {
        key: str(flag) if isinstance(flag, Path) else flag
        for key, flag in flags.items()
        if flag not in (None, (), []) and flag is not False
    }
    price = parameters.get("model_price") and parse_price(parameters["model_price"])
    models = naming(parameters.get("model") or ())
    settings = given([*(parameters.get("config") or ()), *config], {**models, **kept, "model.price": price})
    in_an_image = settings.sandbox.image or settings.sandbox.kind in ("docker", "commit")
    if in_an_image and (python := parameters.get("python")):
        raise UsageError(f"--python {python} is on this machine, but the tests run in an image; omit --python")
    return settings
