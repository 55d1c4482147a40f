"""The page docs/systems.md, from the recipes. `make reference` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from agent.recipes import GROUPS, Check, Recipe, everything, flattened

BEGIN = """# Published systems that work here

Made from the recipes in `agent/recipes` by `make reference`. `--recipe NAME` runs a system by its name (`solve`, `fix`,
`bench run`; in a file `recipe = "NAME"`), and any other option overrides its settings. `ramify recipes`
lists them, `ramify recipes NAME` shows one; a recipe about data, training or evaluation is commands instead.

Each system says what differs from its paper, and names the tests in `tests/` that hold what it has. None needs a
hosted model, and none shows the figure in a paper's abstract: with what model, and on what tasks, is not ours to say.
[More systems](supporting-systems.md) have a mechanism here and no recipe.
"""


RUN = re.compile(r"\| ([a-z0-9-]+) \| (\d+ of \d+) = .+? \| ([\d.]+) \| ([\d.]+) \| .* \|")
"""A row of the table of systems in docs/figures.md: name, resolved tasks, requests and test runs a task."""


def page() -> str:
    """The page."""
    return "\n".join([BEGIN, *(line for group in GROUPS for line in _group(group))])


def _group(group: str) -> Iterator[str]:
    yield f"## {GROUPS[group]}\n"
    for recipe in everything():
        if recipe.group == group:
            yield from _section(recipe)


def _section(recipe: Recipe) -> Iterator[str]:
    yield f"### {recipe.name}\n"
    yield f"{recipe.summary} *{recipe.title}*{f', {recipe.reference}' if recipe.reference else ''}.\n"
    yield "\n".join(("```text", *recipe.command, "```\n"))
    if settings := flattened(recipe.settings):
        yield f"Settings: {', '.join(f'`{key} = {_shown(value)}`' for key, value in settings.items())}.\n"
    if recipe.name in _figures():
        resolved, requests, test_runs = _figures()[recipe.name]
        yield (
            f"Resolved with a simulated developer: {resolved} tasks, with {requests} requests and {test_runs} test "
            "runs a task ([table](figures.md#published-searches-on-ten-tasks-with-a-simulated-developer)).\n"
        )
    yield "\n".join(("What differs:\n", *(f"- {sentence}" for sentence in recipe.differs), ""))
    yield "\n".join(("| what has to hold | test |", "|---|---|", *map(_row, recipe.checks), ""))


@cache
def _figures() -> Mapping[str, tuple[str, str, str]]:
    """The figures of the systems that were run on our tasks, by name."""
    text = Path(__file__).with_name("figures.md").read_text(encoding="utf-8")
    return {name: (resolved, requests, runs) for name, resolved, requests, runs in RUN.findall(text)}


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(check: Check) -> str:
    return f"| {check.holds} | {', '.join(f'`{test}`' for test in check.tests)} |"
