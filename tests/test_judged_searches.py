"""Searches whose states a model values: in a real sandbox, against a scripted server over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.build.composition import resume, start
from agent.config import load
from agent.errors import ConfigError
from agent.run.run import Run
from tests.projects import BUG, FIX, TESTS, commit, quick_means, quick_task, task
from tests.projects import SOURCE as BROKEN
from tests.scripted_server import Reply, ScriptedServer, says

ITEMS = {"items": ["Is the empty list handled?", "Is the sum kept?"]}
ANSWERS = {"answers": [{"item": 1, "answer": "no", "reason": "0 < 0"}, {"item": 2, "answer": "yes", "reason": "same"}]}
KINDS = {
    "Write it: at most": "list",
    "Answer each question": "score",
    "Two reviewers debate this": "speech",
    "How likely does this change": "judge",
    "Two reviewers have debated": "judge",
}


class Panel:
    """A policy and a judge behind one server: what each was asked, and what the judge says next."""

    def __init__(self, edits: list[tuple[str, str]], opinions: list[tuple[float, str, str]], words: str = "") -> None:
        self.edits, self.opinions, self.words = iter(edits), iter(opinions), words
        self.asked: list[str] = []
        self.heard: list[str] = []

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        text = body["messages"][-1]["content"]
        kind = next((kind for mark, kind in KINDS.items() if mark in text), "policy")
        self.asked.append(kind)
        self.heard.append(text)
        if kind == "policy":
            return self._edit(body)
        value, verdict, assessment = next(self.opinions) if kind == "judge" else (0.0, "", "")
        opinion = {"value": value, "verdict": verdict, "assessment": assessment}
        return says(json.dumps({"list": ITEMS, "score": ANSWERS, "judge": opinion, "speech": "So it is."}[kind]))

    def _edit(self, body: Mapping[str, Any]) -> Reply:
        if "tools" not in body:
            return says(self.words)
        if (edit := next(self.edits, None)) is None:
            return says("Done.", ("submit", {}))
        old, new = edit
        return says("Now.", ("edit", {"path": "means.py", "old": old, "new": new}), ("run_tests", {}))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def settings(server: ScriptedServer, **flags: object):
    given = {"policy.name": "openai/tiny", "model.base_url": server.url, "sandbox.kind": "namespace"}
    return load(flags=given | {key.replace("__", "."): value for key, value in flags.items()})


@pytest.mark.slow
@pytest.mark.namespace
def test_the_next_turn_is_shown_what_the_judge_said_and_nothing_is_asked_twice(tmp_path: Path):
    edits = [(BUG, BUG.replace("< 0", "< -1")), ("< -1", "< -2")]
    panel = Panel(edits, [(0.2, "refine", "Zero is not below zero."), (0.1, "abort", "Worse.")])
    with ScriptedServer(panel) as server:
        asked = settings(server, value__name="blend", value__checklist=1.0, search__name="best_of_n", search__depth=1)
        limited = asked.model_copy(update={"budget": asked.budget.model_copy(update={"max_nodes": 2})})
        start(quick_task(quick_means(tmp_path / "repo")), limited, tmp_path / "run")
        result = resume(tmp_path / "run", budget={"max_nodes": 3})
    assert (result.status, result.best_node) == ("improved", 1)
    assert panel.asked == ["policy", "judge", "list", "score", "policy", "judge", "score"]
    assert "Zero is not below zero." not in panel.heard[0]
    assert panel.heard[4].startswith("A reviewer gives it 0.20 of 1 and would improve it: Zero is not below zero.\n")
    with Run.open(tmp_path / "run") as run:
        assert run.note(0, "checklist") == ITEMS
        assert run.tree[2].parents == (1,)
        first, second = (run.tree[n].evaluation for n in (1, 2))
        assert (first.parts["judge"], first.parts["checklist"], first.by_tests) == (0.2, 0.5, 0.1)
        assert first.value > second.value > run.tree.root.value
        assert "- no: Is the empty list handled? (0 < 0)" in first.notes
        assert run.usage.model_calls == 7


@pytest.mark.slow
@pytest.mark.namespace
def test_where_no_test_fails_a_critic_has_a_solution_gone_on_with_until_it_is_accepted_and_submitted(tmp_path: Path):
    passing = TESTS.replace("def test_mean_of_nothing", "def not_yet")
    repo = commit(tmp_path / "repo", {"means.py": BROKEN, "test_means.py": passing, ".gitignore": "__pycache__/\n"})
    half = FIX.replace("<=", "==")
    panel = Panel(
        [(BUG, half), (half, FIX)],
        [(0.6, "refine", "Compare as before."), (0.9, "accept", "Right.")],
        words="Guard the empty list",
    )
    with ScriptedServer(panel) as server:
        asked = settings(server, value__name="debate", search__name="strategies", search__strategies=1)
        result = start(task(repo), asked, tmp_path / "run")
    assert (result.status, result.verified, result.best_node) == ("submitted", True, 4)
    assert FIX.encode() in result.patch
    with Run.open(tmp_path / "run") as run:
        assert [node.kind for node in run.tree] == ["", "strategy", "solution", "solution", "solution"]
        assert [node.evaluation.parts.get("accept") for node in run.tree] == [None, None, 0.0, 1.0, 1.0]
    debate = ["speech", "speech", "judge"]
    assert panel.asked == ["policy", "policy", *debate, "policy", *debate, "policy"]
    assert panel.heard[5] == "A debate gives it 0.60 of 1 and would improve it: Compare as before."


def test_a_judge_needs_a_model_and_mutate_is_none(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"value\.model=PROVIDER/NAME"):
        start(quick_task(tmp_path), load(flags={"value.name": "judge"}), tmp_path / "run")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"value.name": "jury"}, "unknown value 'jury': one of blend, checklist, debate, judge, prm, tests"),
        (
            {"value.name": "judge", "value.mends": 3},
            r"unknown setting `value\.mends`: `judge` takes model, max_retries",
        ),
        ({"value.name": "blend", "value.judge": 0.0}, "give one a weight"),
        ({"value.name": "judge", "value.model": "tiny"}, "write PROVIDER/NAME"),
        ({"value.max_retries": 3}, r"unknown setting `value\.max_retries`: `tests` takes no settings"),
    ],
)
def test_a_setting_of_a_value_that_makes_no_sense_is_named(flags, message: str, tmp_path: Path):
    named = {"policy.name": "openai/tiny", "model.base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(ConfigError, match=message):
        start(quick_task(tmp_path), load(flags=named | flags), tmp_path / "run")
