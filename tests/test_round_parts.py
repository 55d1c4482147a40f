"""What a run in rounds is made of, as the settings ask."""

from __future__ import annotations

import pytest

from agent.build.factories import round_components
from agent.settings import Choice, RefineSettings, Settings, TournamentSettings
from tests.scripted import ScriptedModel

MODEL = Choice(name="openai/x")


def asked(settings):
    """The names of the models that are made, and the parts."""
    names = []

    def make(name):
        names.append(name)
        return ScriptedModel([])

    return names, round_components(settings, make)


def test_one_rollout_in_one_round_is_a_plain_run_and_its_search_is_the_one_that_is_named():
    settings = Settings(policy=MODEL)
    assert asked(settings) == ([], None)
    assert settings.resolved_search == Choice(name="auto")


@pytest.mark.parametrize("waves", [{"rollouts": 3}, {"rounds": 2}])
def test_a_search_that_is_left_open_is_that_of_independent_rollouts_and_one_that_is_named_stays(waves):
    settings = Settings(policy=MODEL, **waves)
    assert settings.resolved_search == Choice(name="best_of_n", options={"n": settings.rollouts})
    for named in (Choice(name="mcts"), Choice(name="auto", options={"patience": 3})):
        assert Settings(policy=MODEL, search=named, **waves).resolved_search == named


def test_where_no_model_proposes_nobody_is_asked():
    names, parts = asked(Settings(rollouts=4, rounds=2))
    assert (names, parts.judge, parts.summariser, parts.planner) == ([], None, None, None)


def test_the_model_that_proposes_sums_up_judges_and_plans_unless_another_is_named():
    names, parts = asked(Settings(policy=MODEL, rollouts=4, rounds=2))
    assert set(names) == {"openai/x"}
    assert None not in (parts.judge, parts.summariser, parts.planner)
    others = {"tournament": TournamentSettings(model="openai/y"), "refine": RefineSettings(model="openai/z")}
    names, _ = asked(Settings(policy=MODEL, rollouts=4, rounds=2, **others))
    assert sorted(names) == ["openai/x", "openai/y", "openai/z"]


def test_nobody_plans_for_one_round_alone():
    _, parts = asked(Settings(policy=MODEL, rollouts=4))
    assert parts.planner is None
