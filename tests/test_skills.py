"""Skills: the lessons of many runs, merged, settled, and kept as files that say where each line comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli.app import app
from agent.errors import UsageError
from agent.learning.memory import Memory
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import Source
from agent.learning.memory.skills import Book, Lessons, consolidate
from tests.memories import recorded, task
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
