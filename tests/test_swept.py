"""Edits of bugs tried in copies of one process, and what orders of them need, beside a whole search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.actions import Edit
from agent.build import composition
from agent.learning.export.edits import Edits
from agent.policy.edit.context import Context
from agent.policy.edit.counts import count_edits
from agent.policy.edit.ranking import MutateOrder, Uniform
from agent.policy.edit.record import Ranked
from agent.run.run import Run
from agent.settings import Settings
from agent.task import Task
from benchmarks.data.synthetic.making import Material, Recipe
from benchmarks.data.synthetic.splitting import Splitting
from benchmarks.flywheel import ranked_edits, swept
from benchmarks.flywheel.pieces import edited, piece, spots
from benchmarks.flywheel.swept import Broken
from sandboxes import Provider
from tests.projects import commit

TILL = '''"""A till."""

from functools import wraps

FLOOR = 0


def logged(function):
    @wraps(function)
    def inner(*args, **options):
        return function(*args, **options)

    return inner


class Till:
    def __init__(self, coins):
        self.coins = coins

    @logged
    def total(self, least=1):
        found = FLOOR
        for coin in self.coins:
            if coin >= least:
                found += coin
        return found


def halvings(number):
    steps = 0
    while number > 1:
        number //= 2
        steps += 1
    return steps
'''
TESTS = """from till import Till, halvings


def test_empty():
    assert Till([]).total() == 0


def test_total():
    assert Till([1, 2, 5]).total() == 8


def test_least():
    assert Till([1, 2, 5]).total(2) == 7


def test_halvings():
    assert [halvings(n) for n in (1, 2, 5, 8)] == [0, 1, 2, 3]
"""
WIDTH = 25


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = commit(tmp_path_factory.mktemp("sources") / "till", {"till.py": TILL, "test_till.py": TESTS})
    return Material.read(folder, tmp_path_factory.mktemp("clones"))


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return Recipe("python3 -m pytest -q", count=4, a_function=3, timeout_s=0.1)


@pytest.fixture(scope="module")
def bugs(material: Material, recipe: Recipe, provider: Provider) -> list[Broken]:
    splits = Splitting(lines=0).of({material.name: material.functions()})
    return list(swept.broken(material, recipe, provider, splits))


@pytest.fixture(scope="module")
def tried(
    material: Material, recipe: Recipe, provider: Provider, bugs: list[Broken]
) -> dict[str, tuple[Broken, ranked_edits.Tried]]:
    known = [(bug, ranked_edits.enumerated(material, recipe, bug, WIDTH)) for bug in bugs]
    mends = swept.mending(material, recipe, provider, [(bug, each.edits) for bug, each in known])
    return {
        str(bug.row["instance_id"]): (bug, replace(each, mends=found))
        for (bug, each), found in zip(known, mends, strict=True)
    }


def search(material: Material, recipe: Recipe, bug: Broken, out: Path) -> tuple[bool, int, Sequence[Context]]:
    """A whole search, as a person would begin it: whether it solved the bug, the states that it tried, and what a model
    would be shown."""
    for path, data in material.files.items():
        (out / "repo").mkdir(parents=True, exist_ok=True)
        (out / "repo" / path).write_bytes(data)
    (out / "repo" / "test_till.py").write_text(TESTS)
    (out / "repo" / "till.py").write_text(bug.wrong)
    task = Task("till", str(bug.row["problem_statement"]), recipe.workspace(out / "repo"), recipe.test_command)
    settings = Settings.model_validate(
        {
            "policy": {"name": "edit", "options": {"by": "mutate", "width": WIDTH, "printed": True}},
            "search": {"name": "best_first", "options": {"depth": 1}},
            "budget": {"max_nodes": WIDTH + 1},
            "sandbox": {"kind": "namespace"},
            "workers": 1,
        }
    )
    result = composition.start(task, settings, out / "run")
    with Run.read(out / "run") as run:
        ranked = Ranked.of(run, 0)
        assert ranked is not None
        return result.status == "solved", len(run.tree) - 1, ranked.contexts


class TestABug:
    def test_is_noticed_by_the_tests_that_reach_it(self, bugs: list[Broken]) -> None:
        assert {bug.row["function"] for bug in bugs} >= {"Till.total", "halvings"}
        for bug in bugs:
            loop = bug.row["function"] == "halvings"
            assert set(bug.failing) <= {t for t in bug.spectrum.outcomes if ("halvings" in t) == loop}
            assert all(bug.messages[test] for test in bug.failing)

    @pytest.mark.slow
    def test_is_mended_by_the_edit_that_takes_it_back_and_not_by_most_others(
        self, tried: dict[str, tuple[Broken, ranked_edits.Tried]]
    ) -> None:
        back = 0
        for bug, each in tried.values():
            assert len(each.mends) == len(each.edits)
            assert sum(map(bool, each.mends)) < len(each.mends) / 2
            for edits, mends in zip(each.edits, each.mends, strict=True):
                if edited(bug.wrong, edits) == bug.right:
                    back += 1
                    assert mends
        assert back > 2

    @pytest.mark.slow
    def test_is_not_mended_by_what_waits_for_ever(
        self, material: Material, recipe: Recipe, provider: Provider, bugs: list[Broken]
    ) -> None:
        bug = next(bug for bug in bugs if bug.row["function"] == "halvings")
        first = bug.wrong.split("\n").index("def halvings(number):") + 1
        wrong, right = (text[text.index("def halvings") :] for text in (bug.wrong, bug.right))
        head, rest = wrong.split("\n", 1)
        waiting = f"{head}\n    __import__('threading').Event().wait()\n{rest}"
        waits, back = (Edit("till.py", wrong, text, first) for text in (waiting, right))
        [mends] = swept.mending(material, recipe, provider, [(bug, [[waits], [back]])])
        assert mends == [False, True]

    @pytest.mark.slow
    def test_needs_what_a_whole_search_needs(
        self, material: Material, recipe: Recipe, tried: dict[str, tuple[Broken, ranked_edits.Tried]], tmp_path: Path
    ) -> None:
        known = [pair for pair in tried.values() if any(pair[1].mends)]
        hard = max(known, key=lambda pair: pair[1].played(MutateOrder()).tried)
        played = hard[1].played(MutateOrder())
        shown = ranked_edits.enumerated(material, recipe, hard[0], WIDTH, printed=True).noted.contexts
        assert search(material, recipe, hard[0], tmp_path) == (played.solved, played.tried, shown)
        assert played.tried > 1
        assert "AssertionError" in shown[0].printed

    @pytest.mark.slow
    def test_is_kept_and_read_again(self, tried: dict[str, tuple[Broken, ranked_edits.Tried]], tmp_path: Path) -> None:
        known = [each for _, each in tried.values()]
        ranked_edits.write(tmp_path / "tried.jsonl", known)
        again = list(ranked_edits.read(tmp_path / "tried.jsonl"))
        assert [each.played(Uniform()) for each in again] == [each.played(Uniform()) for each in known]

    @pytest.mark.slow
    def test_gives_a_tree_that_counts_and_rows_are_made_of(
        self, material: Material, recipe: Recipe, tried: dict[str, tuple[Broken, ranked_edits.Tried]], tmp_path: Path
    ) -> None:
        bug, each = next(pair for pair in tried.values() if any(pair[1].mends) and not pair[1].mends[0])
        first = list(each.mends).index(True)
        ranked_edits.grown(replace(each, mends=each.mends[: first + 1]), material, recipe, bug, tmp_path / "run")
        with Run.read(tmp_path / "run") as run:
            counts = count_edits([run])
            rows: list[Any] = list(Edits()(run))
        assert (counts.tried, counts.right) == (first + 1, 1)
        assert [row["prompt"][0]["content"].count("<L1>") for row in rows] == [1]


class TestAPiece:
    def test_is_one_function_with_its_class_at_its_lines(self) -> None:
        total = next(each for each in spots(TILL) if each.name == "Till.total")
        after = TILL.replace("coin >= least", "coin > least")
        made = piece("till.py", total, total, TILL, after)
        assert made is not None
        assert made["text"].splitlines()[total.start - 1] == "    def total(self, least=1):"
        assert [line for line in made["text"].splitlines() if line.startswith("class")] == ["class Till:"]
        assert "halvings" not in made["text"]

    @pytest.mark.parametrize("text", [TILL.replace("FLOOR = 0", "FLOOR = 1"), TILL.replace("@logged", "@wraps")])
    def test_is_none_of_what_is_outside_of_it(self, text: str) -> None:
        total = next(each for each in spots(TILL) if each.name == "Till.total")
        assert piece("till.py", total, total, TILL, text) is None

    def test_holds_lines_that_an_edit_adds_or_takes_away(self) -> None:
        line = TILL.split("\n").index("    steps = 0") + 1
        halvings = spots(TILL)[-1]
        longer = edited(TILL, [Edit("till.py", "    steps = 0\n", "    steps = 0\n    steps += 0\n", line)])
        shorter = edited(longer, [Edit("till.py", "    steps += 0\n", "", line + 1)])
        assert shorter == TILL
        made = piece("till.py", halvings, halvings, TILL, longer)
        assert made is not None
        assert "    steps += 0" in made["text"].splitlines()
