"""The calibrated developer draws at the rates that it is given, and the table of efforts counts right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.budget import Usage
from agent.prompts import render
from benchmarks.data.sources import open_source
from benchmarks.perf.calibrated import MOST_FIXES, RIGHT_SCORES, WRONG_SCORES, CalibratedDeveloper, Known, Line, Rates
from benchmarks.perf.efforts_sim import Ran, Runs, Said, difference, remembered, table
from benchmarks.perf.variants import Variant
from tests.instances import make_benchmark
from tests.tiers import slow_but

LINES = 2000
TEST = "test_calc.py::test_add"
SHOWS = """import calc


class TestSums:
    def test_add(self):
        assert calc.add(2, 3) == 5


def test_twice():
    assert calc.twice(2) == 4
"""


def patch(line: str) -> bytes:
    text = "--- a/calc.py\n+++ b/calc.py\n@@ -1,3 +1,3 @@\n def add(a, b):\n-    return a - b\n+    return {}\n \n"
    return f"diff --git a/calc.py b/calc.py\n{text.format(line)}".encode()


def wrong(line: str, value: int) -> Variant:
    return Variant(patch(line), False, False, frozenset(), {TEST: f"E   AssertionError: assert {value} == 5"})


RIGHT = Variant(patch("a + b"), True, False, frozenset({TEST}), {})
WRONG = [wrong("b - a", 1), wrong("a * b", 6)]
BASE = Variant(b"", False, False, frozenset(), {TEST: "E   AssertionError: assert -1 == 5"})


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    folder = tmp_path_factory.mktemp("benchmark")
    source = open_source(str(make_benchmark(folder)), folder / "work")
    instance = next(source.instances())
    source.prepare(instance)
    hidden = replace(instance.hidden, fail_to_pass=(TEST,))
    return Known(replace(instance, hidden=hidden), [RIGHT], WRONG, BASE, {"test_calc.py": SHOWS})


class Conversation:
    """A line of work that is told what the test says."""

    def __init__(self, developer: CalibratedDeveloper) -> None:
        self._developer = developer
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": render("chat_system")}]

    def tell(self, text: str) -> list[str]:
        """The answer's calls: commands, or the names of other tools."""
        self._messages.append({"role": "user", "content": text})
        answer = self._developer({"messages": self._messages})
        self._messages.append({"role": "assistant", **answer})
        calls = [call["function"] for call in answer["tool_calls"]]
        return [json.loads(call["arguments"]).get("command", call["name"]) for call in calls]


def judged(developer: CalibratedDeveloper, change: bytes) -> float:
    messages = [
        {"content": render("judge_system")},
        {"content": f"The issue.\n\n{change.decode()}\n</change>\n- a test"},
    ]
    return float(json.loads(developer({"messages": messages})["content"])["value"])


class TestTheDrawnRates:
    @pytest.mark.parametrize("right", slow_but([0.3], [0.3, 0.75]))
    def test_first_fixes_are_right_as_often_as_asked(self, known: Known, right: float) -> None:
        developer = CalibratedDeveloper(known, Rates(right=right), 0)
        share = sum(developer.line(n).first.right for n in range(LINES)) / LINES
        assert share == pytest.approx(right, abs=0.035)

    def test_so_are_tests_complete_or_in_a_way_of_their_own_and_the_others_assert_the_mistake(
        self, known: Known
    ) -> None:
        developer = CalibratedDeveloper(known, Rates(right=0.0, complete=0.8, own_way=0.4), 0)
        tests = [developer.line(n).tests["test_issue.py"] for n in range(LINES)]
        assert sum("@fails_with" in test for test in tests) / LINES == pytest.approx(0.2, abs=0.03)
        assert sum("@with_mark" in test for test in tests) / LINES == pytest.approx(0.4, abs=0.035)

    def test_scores_are_those_of_readers_and_a_wrong_change_looks_right_as_often_as_asked(self, known: Known) -> None:
        developers = [CalibratedDeveloper(known, Rates(fooled=0.5), seed) for seed in range(LINES)]
        assert {judged(each, RIGHT.patch) for each in developers} == set(RIGHT_SCORES)
        scores = [judged(each, WRONG[0].patch) for each in developers]
        fooled = sum(score not in WRONG_SCORES for score in scores) / LINES
        assert fooled == pytest.approx(0.5 * 16 / 17, abs=0.035)  # one score was given to both
        assert judged(developers[0], WRONG[0].patch) == scores[0]

    def test_the_draws_of_a_line_depend_on_seed_and_number_only(self, known: Known) -> None:
        one, other = (CalibratedDeveloper(known, Rates(right=0.5), 7) for _ in range(2))
        other.line(0)
        assert [one.line(n).first for n in range(20)] == [other.line(n).first for n in range(20)]
        assert [one.line(n).first for n in range(20)] != [
            CalibratedDeveloper(known, Rates(right=0.5), 8).line(n).first for n in range(20)
        ]


class TestALine:
    def test_is_corrected_while_something_shows_that_it_is_wrong(self, known: Known) -> None:
        work = Conversation(CalibratedDeveloper(known, Rates(right=0.0), 0))
        test, first, tests = work.tell("Solve it.")
        assert (test.startswith("cat > test_issue.py"), tests) == (True, "run_tests")
        second, _ = work.tell("A test of your own fails: correct the change, or the test.")
        third, _ = work.tell("A reviewer gives it 0.03 of 1: as scored.")
        assert second != first
        assert MOST_FIXES == 3
        assert work.tell("A test of your own fails: correct the change, or the test.") == ["submit"]
        assert "git apply" in third

    def test_that_begins_with_a_test_is_shared_by_the_lines_that_follow_it(self, known: Known) -> None:
        developer = CalibratedDeveloper(known, Rates(right=1.0), 0)
        one, other = Conversation(developer), Conversation(developer)
        assert one.tell(render("chat_reproduce"))[1:] == ["run_tests"]
        other._messages = [*one._messages]
        assert "git apply" in one.tell("now make the change")[0]
        assert "git apply" in other.tell("now make the change")[0]
        assert one.tell("All is well.") == other.tell("All is well.") == ["submit"]

    def test_a_test_that_asserts_a_mistake_passes_with_that_mistake_only(self, known: Known, tmp_path: Path) -> None:
        developer = CalibratedDeveloper(known, Rates(right=0.0, complete=0.0, own_way=0.0), 0)
        line = next(each for each in map(developer.line, range(50)) if each.first is WRONG[1])
        ends = ends_of(line, tmp_path, {"right": "a + b", "same": "a * b", "other": "b - a", "base": "a - b"})
        assert ends == {"right": False, "same": True, "other": False, "base": False}
        assert "twice" not in line.tests["test_issue.py"]

    def test_a_test_in_a_way_of_its_own_passes_with_right_fixes_that_have_its_mark(
        self, known: Known, tmp_path: Path
    ) -> None:
        line = CalibratedDeveloper(known, Rates(complete=1.0, own_way=1.0), 0).line(3)
        marked = {"marked": f"a + b\n{line.mark}", "wrong": f"b - a\n{line.mark}", "unmarked": "a + b"}
        assert ends_of(line, tmp_path, marked) == {"marked": True, "wrong": False, "unmarked": False}


def ends_of(line: Line, folder: Path, sources: dict[str, str]) -> dict[str, bool]:
    """Whether the tests of the line pass with each way to add."""
    ends = {}
    for name, text in sources.items():
        place = folder / name
        place.mkdir()
        (place / "calc.py").write_text(f"def add(a, b):\n    return {text}\n")
        (place / "test_issue.py").write_text(line.tests["test_issue.py"])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(place), str(place)]
        env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        ends[name] = subprocess.run(command, cwd=place, env=env, capture_output=True, check=False).returncode == 0
    return ends


def test_a_mark_is_no_change(known: Known) -> None:
    marked = RIGHT.patch.replace(b" \n", b" \n+# in the way of line 3\n")
    assert marked != RIGHT.patch
    assert known.verdict(marked) is True
    assert known.verdict(RIGHT.patch + b"+other = 1\n") is None
    assert known.verdict(b"") is False


def test_votes_go_to_the_best_score_less_what_tests_take_from_it(known: Known) -> None:
    attempts = f"## Attempt A\n\n{WRONG[0].patch.decode()}</x>\n\n## Attempt B\n\n{RIGHT.patch.decode()}</x>\n"
    told = "The attempts wrote tests of their own.\n- t (by A): A passed; B failed"
    fooled = [CalibratedDeveloper(known, Rates(fooled=1.0), seed) for seed in range(300)]

    def winners(question: str) -> str:
        messages = [{"content": render("tournament_system")}, {"content": question}]
        return "".join(json.loads(each({"messages": messages})["content"])["winner"] for each in fooled)

    assert 90 < winners(attempts).count("B") < 180  # no better than chance
    assert winners(f"{attempts}\n{told}").count("B") < 60  # 36 of 289 pairs of scores are that far apart


class TestTheTable:
    def runs(self, arm: str, resolved: dict[tuple[str, int], bool], requests: int = 3) -> Iterator[Ran]:
        for (task, seed), good in resolved.items():
            yield Ran(arm, 0.5, 0.0, task, seed, good, requests, 6, 1.0)

    def test_has_shares_and_paired_differences_of_what_all_have_run(self) -> None:
        pairs = [(task, seed) for task in "ab" for seed in range(5)]
        votes = {pair: pair[1] < 2 for pair in pairs}
        tree = {pair: pair[1] < 3 for pair in pairs} | {("c", 0): True}
        runs = [*self.runs("four lines, votes", votes), *self.runs("tree", tree, requests=9)]
        assert list(table(runs)) == [
            "| 0.50 | 0 | four lines, votes | 4 of 10 = 0.40 [0.17, 0.69] | 3.0 | 6.0 |  |",
            "| 0.50 | 0 | tree | 6 of 10 = 0.60 [0.31, 0.83] | 9.0 | 6.0 | +0.20 [+0.20, +0.20] |",
        ]

    def test_the_interval_of_a_difference_is_that_of_tasks_drawn_again(self) -> None:
        ran = list(self.runs("tree", {("a", 0): True, ("a", 1): True, ("b", 0): True, ("b", 1): False}))
        against = list(self.runs("votes", {("a", 0): False, ("a", 1): False, ("b", 0): True, ("b", 1): False}))
        assert difference(ran, against) == "+0.50 [+0.00, +1.00]"


@pytest.mark.namespace
@pytest.mark.slow
def test_the_program_works_with_the_developer_and_no_tests_run_twice_on_the_same_files(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with remembered(tmp_path / "reports"):
        good = Runs(tmp_path).run(known, "one line", Rates(right=1.0), 0)
        stored = len(list((tmp_path / "reports").iterdir()))
        again = Runs(tmp_path).run(known, "one line", Rates(right=1.0), 0)
        assert len(list((tmp_path / "reports").iterdir())) == stored
        bad = Runs(tmp_path).run(known, "one line", Rates(right=0.0, complete=1.0), 0)
        tree = Runs(tmp_path).run(known, "tree", Rates(right=1.0, own_way=1.0), 0)
    assert (good.resolved, bad.resolved, tree.resolved) == (True, False, True)
    assert (again.resolved, again.requests, again.test_runs) == (good.resolved, good.requests, good.test_runs)
    assert good.requests < bad.requests
    assert good.requests < tree.requests


@pytest.mark.namespace
@pytest.mark.slow
@pytest.mark.parametrize("system", ["agent-q", "caid", "codetree", "trace"])
def test_the_developer_answers_what_published_searches_ask(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, system: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with remembered(tmp_path / "reports"):
        ran = Runs(tmp_path).run(known, system, Rates(right=1.0, own_way=0.0), 0)
    assert ran.resolved
    assert not [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_a_run_is_made_again_only_where_an_answer_differs(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(known: Known, arm: str, developer: CalibratedDeveloper, said: Said) -> Any:
        asked = {"messages": [{"role": "system", "content": render("chat_system")}, {"role": "user", "content": ""}]}
        said.append((asked, developer(asked)))
        fix = RIGHT if "a + b" in str(said[0][1]) else WRONG[0]
        return SimpleNamespace(patch=fix.patch, usage=Usage(model_calls=1), seconds=len(made))

    runs, made = Runs(tmp_path), list[str]()
    monkeypatch.setattr(runs, "_start", lambda *given: made.append("") or start(*given))
    rates = Rates(right=0.5, complete=1.0, own_way=0.0)
    found = [runs.run(known, "one line", rates, seed) for seed in range(30)]
    assert {run.seed for run in found} == set(range(30))
    assert len(made) == 3  # the right fix, and two wrong ones
    assert runs.run(known, "tree", rates, 0).seconds == 4.0
    assert 5 < sum(run.resolved for run in found) < 25
