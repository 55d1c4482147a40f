"""The mechanism of each recipe of a search makes an event that nothing else makes; switched off, it makes none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.recipes import everything
from tests.halves import halves
from tests.recipe_cases import CASES, HALVES, OFF, Case, solve
from tests.tiers import slow_but


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return halves(tmp_path_factory.mktemp("project") / "repo")


@pytest.mark.namespace
@pytest.mark.parametrize("case", slow_but(CASES[:1], CASES), ids=[case.recipe for case in CASES])
def test_a_recipe_makes_the_event_that_only_its_mechanism_makes(case, repo, tmp_path):
    with solve(repo, tmp_path / "run", case, case.recipe) as run:
        assert run.started.settings["recipe"] == case.recipe
        assert all(part(run) for part in case.parts)


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("off", OFF, ids=[" ".join(off) for off in OFF])
def test_a_recipe_without_its_mechanism_does_not_make_that_event(off, repo, tmp_path):
    recipe, *options = off
    (case,) = (case for case in CASES if case.recipe == recipe)
    with solve(repo, tmp_path / "run", replace(case, options=[*case.options, *options]), recipe) as run:
        assert len(run.tree) > 1
        made = [bool(part(run)) for part in case.parts]
        assert not (any(made) if len(options) > 1 else all(made))  # several options switch off all parts, and one some


@pytest.mark.slow
@pytest.mark.namespace
@pytest.mark.parametrize("lines", [(), HALVES], ids=["mutate", "model"])
def test_a_run_without_a_recipe_makes_none_of_these_events(lines, repo, tmp_path):
    with solve(repo, tmp_path / "run", Case("", len, lines, ["budget.max_nodes=4"]), "") as run:
        assert len(run.tree) > 2
        assert [case.recipe for case in CASES if all(part(run) for part in case.parts)] == []


def test_every_recipe_of_a_search_is_run():
    alone = {"april", "evogit", "experepair"}
    searches = {recipe.name for recipe in everything() if recipe.kind == "search"}
    assert {case.recipe for case in CASES} | alone == searches
