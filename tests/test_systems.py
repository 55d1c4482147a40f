"""The published systems that the documentation says work here have the checks that it names."""

from __future__ import annotations

import ast
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent.recipes import Recipe, everything

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
PAGE = (DOCS / "systems.md").read_text()
CHECK = re.compile(r"`(test_\w+\.py)::([\w:]+)`")
LINES = [*PAGE.splitlines(), *(DOCS / "supporting-systems.md").read_text().splitlines()]
ROWS = [line for line in LINES if line.startswith("| ") and not line.startswith("| what has to hold ")]


@cache
def names(file: str) -> frozenset[str]:
    """The tests of a file, those of classes with the class before them."""
    body = ast.parse((TESTS / file).read_text()).body
    inside = ((f"{each.name}::", each.body) for each in body if isinstance(each, ast.ClassDef))
    found = [("", body), *inside]
    return frozenset(
        f"{prefix}{each.name}" for prefix, those in found for each in those if isinstance(each, ast.FunctionDef)
    )


@pytest.mark.parametrize("row", ROWS, ids=[row.split("|")[1].strip()[:60] for row in ROWS])
def test_what_has_to_hold_of_a_system_is_held_by_a_test_that_exists(row: str) -> None:
    checks = CHECK.findall(row)
    assert checks
    assert [f"{file}::{name}" for file, name in checks if name not in names(file)] == []


@pytest.mark.parametrize("recipe", everything(), ids=[recipe.name for recipe in everything()])
def test_a_recipe_has_checks(recipe: Recipe) -> None:
    assert recipe.checks


def test_the_page_is_what_the_recipes_make() -> None:
    made: dict[str, Any] = runpy.run_path(str(DOCS / "systems.py"))
    assert made["page"]() == PAGE, "run `make systems`"
