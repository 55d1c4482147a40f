"""A trial of skills: what is kept, what is not, and which batches decide nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agent.errors import UsageError
from agent.learning.memory import Memory
from agent.learning.memory.insights import insight_id
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import Source
from agent.learning.memory.recall import OPENING
from agent.learning.memory.skill_files import write
from agent.learning.memory.skills import Lessons, consolidate
from agent.run.events import Noted
from agent.run.run import Run
from benchmarks.cli.app import app
from tests.memories import recorded, task
from tests.test_bench_compare import batch

SKILL = "Ask of every reduction what it does with nothing."
LEARNED_FROM = "Dates before the epoch are printed a day late, wherever the zone of the machine is east of Greenwich."
READ_ONLY = {"memory": {"path": True, "remember": False}}


def graded(
    out: Path,
    outcomes: Mapping[str, bool],
    *,
    shown: tuple[str, ...] = (),
    chosen: Mapping[str, Any] | None = None,
    statements: Mapping[str, str] | None = None,
) -> Path:
    """A graded batch with its runs, the named ones of which were shown the skill."""
    batch(out, {name: (resolved, 1) for name, resolved in outcomes.items()})
    for name in outcomes:
        recorded(out / name, task((statements or {}).get(name, f"{name} is wrong"), id=name))
        if name in shown:
            with Run.open(out / name) as run:
                run.record(Noted(0, OPENING, {"text": SKILL, "ids": [insight_id(SKILL)]}))
    identity = json.loads((out / "batch.json").read_text())
    (out / "batch.json").write_text(json.dumps(identity | {"chosen": chosen}))
    return out


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    source = Source("dates-1", "", Issue("dates", LEARNED_FROM), "solved", "state 1", "")
    write(consolidate([Lessons(source, (SKILL,))]), tmp_path / "skills")
    return tmp_path / "skills"


def kept(skills: Path, without: Path, with_skills: Path) -> Result:
    memory = skills.parent / "memory.db"
    argv = ["keep", skills, without, with_skills, "--memory", memory]
    return CliRunner().invoke(app, list(map(str, argv)))


def in_memory(skills: Path) -> list[str]:
    file = skills.parent / "memory.db"
    return [item.searched for item in Memory(file).store.items("insight")] if file.exists() else []


def test_skills_with_which_more_is_resolved_are_kept(skills: Path, tmp_path: Path) -> None:
    without = graded(tmp_path / "without", {"a": True, "b": False, "c": False})
    with_skills = graded(tmp_path / "with", {"a": True, "b": True, "c": False}, shown=("b", "c"), chosen=READ_ONLY)
    done = kept(skills, without, with_skills)
    assert (done.exit_code, in_memory(skills)) == (0, [SKILL])
    assert "3 instances are graded in both, 2 of them shown a skill" in done.stdout
    assert "A resolves 1 of 3, B 2" in done.stdout
    assert "kept: 1 skill taken into" in done.stdout
    assert "it may be chance" in done.stdout


@pytest.mark.parametrize("b", [False, True])
def test_skills_with_which_as_much_or_less_is_resolved_are_not_kept(b: bool, skills: Path, tmp_path: Path) -> None:
    without = graded(tmp_path / "without", {"a": True, "b": b})
    with_skills = graded(tmp_path / "with", {"a": True, "b": False}, shown=("a",), chosen=READ_ONLY)
    done = kept(skills, without, with_skills)
    assert (done.exit_code, in_memory(skills)) == (1, [])
    assert "not kept: no more is resolved with the skills" in done.stdout


def test_an_issue_that_the_skills_were_learned_from_is_not_held_back(skills: Path, tmp_path: Path) -> None:
    same = {"b": f"{LEARNED_FROM} Please help."}
    without = graded(tmp_path / "without", {"a": False, "b": False}, statements=same)
    with_skills = graded(tmp_path / "with", {"a": True, "b": True}, shown=("a",), chosen=READ_ONLY, statements=same)
    refused = kept(skills, without, with_skills).exception
    assert isinstance(refused, UsageError)
    assert str(refused).startswith("b is not held back: the skills were learned from dates-1, a run on that issue")
    assert in_memory(skills) == []


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({}, {"chosen": READ_ONLY}, "was shown one of the skills"),
        ({"shown": ("a",)}, {"shown": ("a",), "chosen": READ_ONLY}, "name the batch without them first"),
        ({}, {"shown": ("a",), "chosen": {"memory": {"path": True}}}, "learned from one another"),
        ({"chosen": {"memory": {"path": True}}}, {"shown": ("a",), "chosen": READ_ONLY}, "learned from one another"),
        ({}, {"shown": ("a",), "chosen": {**READ_ONLY, "rollouts": 4}}, r"different settings \(rollouts\)"),
    ],
)
def test_batches_that_differ_in_more_than_the_skills_or_not_in_them_decide_nothing(
    before: dict[str, Any], after: dict[str, Any], why: str, skills: Path, tmp_path: Path
) -> None:
    without = graded(tmp_path / "without", {"a": False}, **before)
    with_skills = graded(tmp_path / "with", {"a": True}, **after)
    with pytest.raises(UsageError, match=why):
        raise kept(skills, without, with_skills).exception or AssertionError
    assert in_memory(skills) == []
