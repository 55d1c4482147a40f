"""Skills: the lessons of many runs, merged, settled, and kept as files that say where each line comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli.app import app
from agent.errors import UsageError
from agent.learning.memory import Memory
from agent.learning.memory.consolidating import Consolidator
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import Source
from agent.learning.memory.skills import Book, Lessons, consolidate
from agent.models import directly
from tests.memories import recorded, task
from tests.scripted import ScriptedModel, answer
from tests.scripted_server import Reply, ScriptedServer, says
from tests.test_memory import ISSUES

CLEAR, KEEP = "Clear the cache before the retry.", "Never clear the cache before the retry!"


def lessons(name: str, *sentences: str, repo: str = "", outcome: Any = "solved") -> Lessons:
    return Lessons(Source(name, "", Issue(name, name, repo), outcome, "state 1", ""), sentences)


POOL = [
    lessons("a", CLEAR, "Read the whole traceback first.", repo="x/one"),
    lessons("b", "Always clear caches before a retry", repo="x/two"),
    lessons("c", KEEP, "Dates have no time zone here.", repo="x/two"),
    lessons("d", KEEP, repo="x/two", outcome="failed"),
    lessons("e", KEEP, repo="x/three", outcome="failed"),
    lessons("f", "The dates here have no time zones.", repo="x/two"),
]


class TestConsolidating:
    def test_of_lessons_that_contradict_one_is_left_with_the_runs_on_both_sides(self) -> None:
        book = consolidate(POOL)
        (conflict,) = book.conflicts
        assert (conflict.kept.text, conflict.kept.runs) == ("Clear the cache before the retry.", ("a", "b"))
        assert [(each.text, each.runs) for each in conflict.dropped] == [(KEEP, ("c", "d", "e"))]
        assert [each.text for each in book.skills if "cache" in each.text] == [conflict.kept.text]

    def test_most_runs_decide_among_those_that_solved_as_much(self) -> None:
        (conflict,) = consolidate(
            [lessons("a", CLEAR), lessons("b", KEEP), lessons("c", KEEP, outcome="failed")]
        ).conflicts
        assert conflict.kept.text == KEEP

    def test_lessons_that_say_the_same_are_one_of_all_their_runs(self) -> None:
        merged = {each.text: each for each in consolidate(POOL).skills}
        dates = merged["Dates have no time zone here."]
        assert (dates.runs, dates.repos) == (("c", "f"), ("x/two",))
        assert merged[CLEAR].repos == ("x/one", "x/two")

    def test_the_order_of_the_runs_makes_no_difference(self) -> None:
        expected = consolidate(POOL)
        for seed in range(30):
            shuffled = POOL[:]
            Random(seed).shuffle(shuffled)
            assert consolidate(shuffled) == expected

    def test_no_runs_give_no_skills(self) -> None:
        assert consolidate([]) == Book((), (), ())


class TestAModel:
    POOL = (
        lessons("a", CLEAR, repo="x/one"),
        lessons("b", "Drop what is stale before you ask again.", repo="x/two"),
        lessons("c", "Leave stored answers alone.", repo="x/three", outcome="failed"),
        lessons("d", "Look."),
    )

    def answered(self, *said: dict[str, Any]) -> tuple[Book, ScriptedModel]:
        model = ScriptedModel([answer(json.dumps(each)) for each in said])
        return consolidate(self.POOL, Consolidator(model, directly)), model

    def test_says_which_lessons_are_one_and_which_contradict_one_another_and_the_runs_decide(self) -> None:
        stale = {"lessons": [1, 2], "text": "Before a retry, drop what may be stale."}
        book, _ = self.answered({"skills": [stale], "contradictions": [[3, 2]]})
        assert [(each.text, each.runs) for each in book.skills] == [(stale["text"], ("a", "b")), ("Look.", ("d",))]
        (conflict,) = book.conflicts
        assert (conflict.kept.runs, [each.runs for each in conflict.dropped]) == (("a", "b"), [("c",)])

    def test_loses_no_lesson_that_it_does_not_name(self) -> None:
        book, _ = self.answered({"skills": []})
        assert {each.text for each in book.skills} == {each.sentences[0] for each in self.POOL}

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            ({"skills": [{"lessons": [1, 9], "text": "x"}]}, "whole numbers from 1 to 4"),
            ({"skills": [{"lessons": [1], "text": "x"}, {"lessons": [1], "text": "y"}]}, "lesson 1 is in two skills"),
            ({"skills": [{"lessons": [1], "text": ""}]}, "has to have a `text`"),
            ({"skills": [], "contradictions": [1]}, "a list of lists"),
        ],
    )
    def test_is_asked_again_after_an_answer_that_makes_no_sense(self, wrong: dict[str, Any], why: str) -> None:
        book, model = self.answered(wrong, {"skills": []})
        assert len(book.skills) == 4
        assert why in model.heard[-1][-1]["content"]

    def test_that_gives_no_readable_answer_leaves_the_merging_to_words(self) -> None:
        book, _ = self.answered({}, {}, {})
        assert book == consolidate(self.POOL)

    def test_is_shown_so_many_lessons_at_a_time_and_then_what_they_come_to(self) -> None:
        """The lessons of 80 runs: 60, then 20, and then the 2 skills of them."""
        many = [lessons(f"r{n:02}", f"Lesson {n:02}.") for n in range(80)]
        said = [{"skills": [{"lessons": [*range(1, n + 1)], "text": f"All {n}."}]} for n in (60, 20)]
        model = ScriptedModel([answer(json.dumps(each)) for each in (*said, {"skills": []}, {"skills": []})])
        book = consolidate(many, Consolidator(model, directly))
        assert [(each.text, len(each.runs)) for each in book.skills] == [("All 60.", 60), ("All 20.", 20)]


@pytest.fixture
def ramify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    return lambda *argv: CliRunner().invoke(app, ["memory", "skills", *map(str, argv)])


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    taught = ([CLEAR, "Read\u202e the traceback."], [CLEAR], [KEEP], ["Dates have no time zone here."], ["Look."])
    about = (task(text, tags={"repo": f"x/{name}"}) for name, text in ISSUES.items())
    return [recorded(tmp_path / f"r{n}", each, insights=taught[n]) for n, each in enumerate(about)]


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


class TestTheDirectory:
    def test_has_the_same_bytes_whatever_the_order_and_whenever(
        self, ramify: Callable[..., Any], runs: list[Path]
    ) -> None:
        assert ramify("build", *runs, "--out", "one").exit_code == 0
        assert ramify("build", *reversed(runs), "--out", "two").exit_code == 0
        assert files(Path("one")) == files(Path("two"))
        assert set(files(Path("one"))) == {"SKILL.md", "conflicts.md", "skills.json"}

    def test_every_line_cites_runs_that_exist(self, ramify: Callable[..., Any], runs: list[Path]) -> None:
        said = ramify("build", *runs, "--out", "skills").stdout
        lines = [line for line in Path("skills/SKILL.md").read_text().splitlines() if line.startswith("- ")]
        assert len(lines) == 4
        for line in lines:
            cited = re.fullmatch(r"- .+ \[(.+)\]", line)[1].split(", ")  # type: ignore[index]
            assert cited
            assert all((Path(run.rpartition("-")[0]) / "journal.jsonl").is_file() for run in cited)
        assert "- Read\\u202e the traceback. [r0-" in "\n".join(lines)
        assert re.search(
            r'contradiction, the first is kept: "Clear [^;]*\(r0-\w+, r1-\w+\); "Never [^;]*\(r2-\w+\)', said
        )
        assert "Dropped: Never clear" in Path("skills/conflicts.md").read_text()

    def test_has_what_a_model_learned_of_each_run_and_merged(
        self, ramify: Callable[..., Any], runs: list[Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        merged = "Before a retry, forget what may be stale."

        def said(body: Mapping[str, Any]) -> Reply:
            asked = body["messages"][-1]["content"]
            if "say the same, or are cases of one thing" in asked:
                return says(json.dumps({"skills": [{"lessons": [1, 2], "text": merged}], "contradictions": [[1, 3]]}))
            text = f"Of {'a median' if 'median' in asked else 'others'}."
            return says(json.dumps({"operations": [{"op": "add", "text": text}]}))

        with ScriptedServer(said) as server:
            options = ("--model", "openai/tiny", "-c", f"model.base_url={server.url}")
            done = ramify("build", *runs[:3], "--out", "skills", *options)
        assert "asked openai/tiny: 4 calls" in done.stdout
        assert f"- {merged} [" in Path("skills/SKILL.md").read_text()

    def test_is_made_of_verified_runs_only(self, ramify: Callable[..., Any], runs: list[Path], tmp_path: Path) -> None:
        torn = recorded(tmp_path / "torn", task("x"), insights=["A rumour."], ended=False)
        done = ramify("build", *runs, torn, "--out", "skills")
        assert done.exit_code == 1
        assert f"refused {torn}: it has not ended" in done.stdout
        assert "rumour" not in Path("skills/SKILL.md").read_text()
        assert isinstance(ramify("build", torn, "--out", "none").exception, UsageError)
        assert not Path("none").exists()

    def test_is_made_anew_but_never_over_something_else(self, ramify: Callable[..., Any], runs: list[Path]) -> None:
        ramify("build", *runs, "--out", "skills")
        assert ramify("build", runs[0], "--out", "skills").exit_code == 0
        assert "time zone" not in Path("skills/SKILL.md").read_text()
        Path("mine").mkdir()
        Path("mine/notes").touch()
        refused = ramify("build", *runs, "--out", "mine").exception
        assert "holds something other than skills" in str(refused)
        assert set(files(Path("mine"))) == {"notes"}

    @pytest.mark.slow
    def test_is_taken_into_a_memory_with_its_runs_which_do_not_learn_from_themselves(
        self, ramify: Callable[..., Any], runs: list[Path]
    ) -> None:
        ramify("build", *runs, "--out", "skills")
        for _ in range(2):
            assert ramify("load", "skills", "--memory", "m.db").exit_code == 0
        memory = Memory(Path("m.db"), make=False)
        assert sorted(len(each.sources) for each in memory.store.items("insight")) == [1, 1, 1, 2]
        found = memory.search("clear the cache", "insight", 9, Issue.of(task(ISSUES["mean"])))
        assert not any("lear the cache" in each.item.searched for each in found)
        whole = Path("skills/skills.json").read_text()
        Path("skills/skills.json").write_text(json.dumps(json.loads(whole) | {"sources": []}))
        refused = str(ramify("load", "skills", "--memory", "m.db").exception)
        assert re.search(r"skills\.json cites the run 'r0-\w+', which is not among its sources", refused)
        newer = json.loads(whole) | {"format": 2}
        Path("skills/skills.json").write_text(json.dumps(newer))
        assert "format 2" in str(ramify("load", "skills", "--memory", "m.db").exception)
        assert "holds no skills" in str(ramify("load", "nowhere", "--memory", "m.db").exception)
