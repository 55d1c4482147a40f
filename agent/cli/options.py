"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Accept",
    "Apply",
    "Config",
    "GoalFailing",
    "Image",
    "Instructions",
    "Json",
    "MaxNodes",
    "MaxSeconds",
    "MaxTokens",
    "MaxUsd",
    "ModelPrice",
    "Out",
    "Paranoid",
    "PatchOut",
    "Policy",
    "Recipe",
    "Rollouts",
    "Rounds",
    "SandboxKind",
    "SearchName",
    "Setup",
    "Strict",
    "SummaryMd",
    "Test",
    "TestFramework",
    "ValueName",
    "Workers",
]

Test = Annotated[
    str | None,
    typer.Option(
        metavar="CMD", help="Command that runs the tests, from the root. Default: found from the repository's files."
    ),
]
TestFramework = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="What CMD runs: pytest, go, cargo, jest, ... Default: found from CMD."),
]
Policy = Annotated[str | None, typer.Option(metavar="mutate|MODEL", help="What proposes the edits.")]
Recipe = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A published system by name (`ramify recipes`); other options win over it."),
]
SearchName = Annotated[str | None, typer.Option(metavar="NAME", help="The algorithm that selects states to expand.")]
ValueName = Annotated[
    str | None, typer.Option(metavar="tests|judge|debate|checklist|blend", help="How states are valued.")
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
Setup = Annotated[
    list[str] | None, typer.Option(metavar="CMD", help="Command to run once in the sandbox, with network; repeatable.")
]
Config = Annotated[
    list[str] | None, typer.Option("-c", "--config", metavar="FILE|KEY=VALUE", help="Settings; later ones win.")
]
Instructions = Annotated[
    Path | None,
    typer.Option("--instructions", metavar="FILE", help="Your own instructions, for the model's system prompt."),
]
MaxNodes = Annotated[int | None, typer.Option(metavar="N", help="The most states.")]
MaxUsd = Annotated[float | None, typer.Option(metavar="N", help="The most dollars to spend on models.")]
MaxTokens = Annotated[int | None, typer.Option(metavar="N", help="The most tokens, prompt and completion together.")]
MaxSeconds = Annotated[float | None, typer.Option(metavar="N", help="The most seconds.")]
Workers = Annotated[int | None, typer.Option(metavar="N", help="Expansions at the same time.")]
Rollouts = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Finish N independent attempts and choose the best patch.")
]
Rounds = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Repeat in N rounds; each learns from the earlier ones."),
]
Out = Annotated[Path | None, typer.Option(metavar="RUN", help="Directory of the run; it must not exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of the patch.")]
PatchOut = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the patch there as well.")]
SummaryMd = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Append a summary in Markdown, as for $GITHUB_STEP_SUMMARY.")
]
Apply = Annotated[
    bool, typer.Option("--apply", help="Apply a solved or submitted patch to the checkout, whole or not at all.")
]
Accept = Annotated[
    list[str] | None,
    typer.Option(
        metavar="declared", help="With --apply: also a patch that breaks tests which the model declares to be wrong."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with code 1 for a patch that breaks such tests.")]
GoalFailing = Annotated[bool, typer.Option("--goal-failing", help="All tests that fail now are goals.")]
