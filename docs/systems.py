"""Makes the page docs/systems.md from the recipes. `make reference` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from agent.recipes import GROUPS, Check, Recipe, everything, flattened

BEGIN = """# Published systems that work here

`make reference` makes this page from the recipes in `agent/recipes`. `--recipe NAME` (for `solve`, `fix` and
`bench run`; in a settings file `recipe = "NAME"`) applies the settings of a system; any other option overrides them.
`ramify recipes` lists the systems, and `ramify recipes NAME` shows one. For data, training or evaluation, a recipe is a
list of commands instead.

Each section lists what differs from the paper, and the tests in `tests/` that check the mechanism. The tests need no
hosted model and do not reproduce the results of the paper, which depend on its model and tasks.
For [more systems](supporting-systems.md), one mechanism is implemented, but there is no recipe.
"""


RUN = re.compile(r"\| ([a-z0-9-]+) \| (\d+ of \d+) = .+? \| ([\d.]+) \| ([\d.]+) \| .* \|")
"""A row of the table of systems in docs/figures.md: name, resolved tasks, requests and test runs a task."""


def page() -> str:
    """Return the page."""
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
    """Return the results of the systems that were run on ten tasks, by recipe name."""
    text = Path(__file__).with_name("figures.md").read_text(encoding="utf-8")
    return {name: (resolved, requests, runs) for name, resolved, requests, runs in RUN.findall(text)}


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(check: Check) -> str:
    return f"| {check.holds} | {', '.join(f'`{test}`' for test in check.tests)} |"
