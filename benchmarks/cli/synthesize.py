"""`ramify bench synthesize`: make synthetic bugs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.options import Config, Image, SandboxKind
from agent.errors import UsageError
from benchmarks.cli.options import say


def synthesize(
    repositories: Annotated[list[Path], typer.Argument(metavar="REPO", help="Git repositories, or bundles of them.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="A new folder, with a source for each split.")
    ],
    test: Annotated[
        str, typer.Option(metavar="CMD", help="Command that runs their tests with pytest.")
    ] = "python3 -m pytest -q",
    requirement: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PACKAGE",
            help="A package that the tests need, pytest included; repeatable. Default: the packages of python3.",
        ),
    ] = None,
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of bugs of each repository.")] = 50,
    a_function: Annotated[int, typer.Option(metavar="N", min=1, help="How many mutants of a function to try.")] = 4,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A repository to hold out from training as a whole; repeatable."),
    ] = None,
    lines: Annotated[
        int,
        typer.Option(
            metavar="PERCENT", min=0, max=100, help="Percentage of the functions in the other repositories to hold out."
        ),
    ] = 25,
    timeout: Annotated[float, typer.Option(metavar="N", min=0.1, help="Seconds for the tests on one mutant.")] = 10.0,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed; the same repositories and seed give the same bugs.")
    ] = 0,
    sandbox: SandboxKind = None,
    image: Image = None,
    config: Config = None,
) -> None:
    """Make bugs that the repositories' own tests detect. Searches can be run on these bugs, and policies
    can learn from them."""
    from agent.config import given
    from benchmarks.data.synthetic import writing
    from benchmarks.data.synthetic.making import Recipe
    from benchmarks.data.synthetic.splitting import Splitting

    settings = given(config or (), {"sandbox.kind": sandbox, "sandbox.image": image})
    recipe = Recipe(test, tuple(requirement or ()), count, a_function, seed, timeout, settings.sandbox)
    splitting = Splitting(frozenset(hold_out or ()), lines)
    bugs = writing.synthesize(repositories, recipe, splitting, out, tell=say)
    if not bugs:
        raise UsageError("the tests did not notice any mutant that was tried: raise --a-function or --timeout")
    sys.stdout.write(writing.table(bugs))
