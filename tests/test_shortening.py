"""Solved paths without their detours: what is left was carried out again, and solves the task."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.actions import Action, Edit, Observation, RunTests, Submit, View
from agent.analysis.minimize import NOTE, Seen, Shortened, shorten
from agent.build.composition import start
from agent.cli.app import app
from agent.config import load
from agent.run.run import Run
from agent.run.tree.node import Node, Step
from tests.exporting import rows
from tests.projects import BUG, FIX, means, task
from tests.scripted_server import ScriptedServer, says
from tests.trees import node


def step(action: Action, text: str = "done", *, ok: bool = True) -> Step:
    return Step((action,), (Observation(text, ok=ok),))


AWAY, BACK = step(Edit("a", "x", "y")), step(Edit("a", "y", "x"))
LOOK, WRONG, FIXED, END = step(View("a")), step(View("b"), ok=False), step(Edit("b", "0", "1")), step(Submit())


def path(*steps: Step) -> list[Node]:
    """The root, and two states that these turns are divided between."""
    return [node(0), node(1, 0, steps=steps[:2]), node(2, 1, 1.0, steps=steps[2:])]


def solves(steps: Sequence[Step]) -> Seen | None:
    """Where it is fixed, and the way back was taken as often as the way there."""
    good = FIXED in steps and steps.count(AWAY) == steps.count(BACK)
    return tuple(each.observations for each in steps) if good else None


class TestAPath:
    def test_loses_its_detours_with_all_that_was_looked_at_on_them(self) -> None:
        found = shorten(path(LOOK, AWAY, LOOK, BACK, LOOK, FIXED, END), solves)
        assert found is not None
        assert found.turns == ((1, 0), (2, 2), (2, 3), (2, 4))
        assert found.of == 7

    def test_keeps_what_was_looked_at_elsewhere_and_loses_calls_that_failed(self) -> None:
        found = shorten(path(LOOK, WRONG, LOOK, FIXED, step(RunTests(), ok=False)), solves)
        assert found is not None
        assert found.turns == ((1, 0), (2, 0), (2, 1), (2, 2))

    def test_is_left_as_it_is_where_doing_the_same_again_does_not_solve_the_task(self) -> None:
        assert shorten(path(AWAY, FIXED), solves) is None

    def test_is_not_carried_out_more_often_than_is_wanted(self) -> None:
        found = shorten(path(FIXED, AWAY, BACK), solves, most=1)
        assert found is not None
        assert (found.tried, len(found.turns)) == (1, 3)

    def test_is_read_as_it_was_kept(self) -> None:
        found = shorten(path(AWAY, BACK, FIXED), solves)
        assert found is not None
        assert Shortened.from_json(asdict(found)) == found

    @given(st.lists(st.sampled_from([LOOK, WRONG, AWAY, BACK, FIXED]), max_size=8))
    def test_never_comes_down_to_one_that_does_not_solve_it(self, steps: list[Step]) -> None:
        way = path(*steps)
        found = shorten(way, solves)
        assert (found is None) == (solves(steps) is None)
        if found is not None:
            left = [way[of].steps[number] for of, number in found.turns]
            assert solves(left) is not None
            assert len(left) <= len(steps)


@pytest.mark.slow
@pytest.mark.namespace
def test_a_run_is_shortened_and_the_row_of_it_has_what_was_said_without_the_detour(
    namespaces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model repairs it, looks, and writes notes that nobody needed: first it is tried without the repair."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    script = [
        says("Repairing.", ("edit", {"path": "means.py", "old": BUG, "new": FIX})),
        says("Looking.", ("view", {"path": "means.py"})),
        says("Noting.", ("write", {"path": "notes.md", "content": "It divides."}), ("run_tests", {})),
    ]
    with ScriptedServer(script) as server:
        flags = {"policy.name": "openai/tiny", "model.base_url": server.url, "sandbox.kind": "namespace"}
        assert start(task(means(tmp_path / "repo")), load(flags=flags), tmp_path / "run").status == "solved"
    shutil.copytree(tmp_path / "run", tmp_path / "bare", ignore=lambda folder, names: {"store"} & {*names})
    bare = CliRunner().invoke(app, ["shorten", str(tmp_path / "bare")], catch_exceptions=False)
    assert bare.output.endswith(": unchanged: its base state was removed\n")
    done = CliRunner().invoke(app, ["shorten", str(tmp_path / "run")], catch_exceptions=False)
    assert done.output.endswith(": 2 of 3 turns lead to the result of state 1 (3 tries)\n")
    with Run.read(tmp_path / "run") as run:
        assert run.note(1, NOTE)["turns"] == [[1, 0], [1, 1]]
        (row,) = rows(run, "retro")
    answers = [message for message in row["messages"] if message["role"] == "assistant"]
    assert [answer["content"] for answer in answers] == ["Repairing.", "Looking."]
    (seen,) = (message["content"] for message in row["messages"] if message["role"] == "tool")
    assert seen.startswith("Edited means.py.")
    assert (row["left_out"], row["provenance"]["exact"]) == (1, False)
    assert "2 of 3 turns" in CliRunner().invoke(app, ["shorten", str(tmp_path / "run")]).output
