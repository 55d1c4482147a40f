"""The published systems that docs/systems.md says work here have the checks that it names."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "systems.md").read_text()
CHECK = re.compile(r"`(test_\w+\.py)::([\w:]+)`")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| what has to hold ")]
SECTIONS = {text.split(":", 1)[0].split("\n", 1)[0]: text for text in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]}
CORE = {
    "RTV and PDR": 6,
    "SAGE": 3,
    "EvoGit": 4,
    "CAID": 5,
    "TraceCoder": 3,
    "CodeTracer": 4,
    "ExpeRepair": 5,
    "Trace2Skill": 3,
}
"""The systems that rollouts are compared, refined, kept and remembered by, each with so many checks at least."""


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


@pytest.mark.parametrize("system", CORE)
def test_a_core_system_has_all_its_checks(system: str) -> None:
    assert SECTIONS[system].count("\n| ") - 1 >= CORE[system]
    assert len(set(CHECK.findall(SECTIONS[system]))) >= CORE[system]
