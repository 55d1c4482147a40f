"""Efforts: settings by how much is to be spent, below all others."""

from __future__ import annotations

import json

import pytest

from agent.budget import Budget, Stop
from agent.config import load, origins
from agent.efforts import EFFORTS
from agent.engine.components import Components
from agent.errors import ConfigError
from agent.evaluate.value.judge import Judge
from agent.policy.chat.policy import ChatPolicy
from agent.run.run import Run
from agent.search.auto import Auto
from agent.settings import Settings
from agent.solver.solve import solve
from tests.projects import BUG, FIX, SOURCE, TESTS, commit, task
from tests.scripted import ScriptedModel, answer

MODEL = "policy=openai/x"


def test_each_effort_is_made_of_known_settings():
    for effort, settings in EFFORTS.items():
        loaded = load(overrides=[MODEL, f"effort={effort}"])
        assert loaded == Settings.model_validate({"policy": {"name": "openai/x"}, "effort": effort, **settings})


def test_more_effort_is_more_lines_of_work():
    lines = [(each.lines, each.rounds) for each in (load(overrides=[MODEL, f"effort={effort}"]) for effort in EFFORTS)]
    assert lines == [(1, 1), (1, 1), (4, 1), (4, 2)]


def test_whatever_is_given_beside_an_effort_wins(tmp_path):
    (tmp_path / "ramify.toml").write_text('effort = "max"\n')
    settings = load([tmp_path / "ramify.toml"], ["rounds=1"], {"search.name": "best_first"})
    assert (settings.rollouts, settings.rounds, settings.search.name) == (4, 1, "best_first")
    assert load(flags={"effort": "max", "recipe": "swe-search"}).rollouts == 3
    told = {origin.key: origin.origin for origin in origins([tmp_path / "ramify.toml"])}
    assert told["rollouts"] == "the effort max"


def test_an_unknown_effort_is_named_with_those_that_there_are():
    with pytest.raises(ConfigError, match="'huge', but should be 'low', 'medium', 'high' or 'max'"):
        load(overrides=["effort=huge"])


@pytest.mark.slow
@pytest.mark.namespace
def test_what_a_judge_wants_abandoned_does_not_end_the_search_although_it_was_submitted(provider, tmp_path):
    """No goal is known: without the judge the first submitted line would be the answer."""

    def line(text):
        return answer("I repair it.", ("edit", {"path": "means.py", "old": BUG, "new": text}), ("submit", {}))

    def judges(messages):
        wrong = "# wrong" in messages[-1]["content"]
        value, verdict = (0.1, "abort") if wrong else (0.9, "accept")
        return answer(json.dumps({"value": value, "verdict": verdict, "assessment": "I read it."}))

    tests = TESTS.replace("mean([]) == 0.0", "mean([4]) == 4")
    repo = commit(tmp_path / "repo", {"means.py": SOURCE, "test_means.py": tests, ".gitignore": "__pycache__/\n"})
    proposing = ScriptedModel([line("    if len(numbers) < 0:  # wrong\n"), line(FIX)])
    with Run.open(tmp_path / "run") as run:
        policy, value, limits = ChatPolicy(proposing), Judge(ScriptedModel(judges, "judge")), Budget(max_nodes=9)
        result = solve(task(repo), Components(provider, policy, Auto(), value, limits, baseline_runs=1, lines=1), run)
    assert (len(proposing.heard), result.stop, result.status) == (2, Stop.SUBMITTED, "submitted")
    assert FIX.encode() in result.patch
