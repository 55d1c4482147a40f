"""Memory: what is remembered of verified runs, how it is found again, and that an issue never finds itself."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.cli.app import app
from agent.errors import ConfigError, MemoryUnusable, UsageError
from agent.learning.memory import Memory
from agent.learning.memory.admission import Unverified
from agent.learning.memory.claims import alike, opposed
from agent.learning.memory.clusters import cluster_of, shape_of
from agent.learning.memory.distilling import Distiller, Tally, read_operations
from agent.learning.memory.insights import Add, Drop, Merge, operated
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import Episode, Experience, Insight, Reflection
from agent.learning.memory.store import SCHEMA
from agent.learning.memory.words import words
from agent.measure.messages import error_of
from agent.models.answers import Unreadable
from agent.run.run import Run
from agent.run.tree.choice import Choice, Reason
from tests.clients import Serve
from tests.memories import BROKEN, PATCH, REPAIR, recorded, report, state, task
from tests.projects import means
from tests.scripted import ScriptedModel, answer
from tests.scripted_server import says

ISSUES = {
    "mean": "mean() raises ZeroDivisionError when it is given an empty list. It should return 0.0.",
    "date": "parse_date does not accept ISO week dates such as 2024-W03-1 and raises a ValueError instead.",
    "cache": "The cache keeps expired entries: get_item returns stale values after the timeout has passed.",
    "path": "join_paths drops the leading slash of absolute paths on Windows drives.",
    "retry": "The HTTP client retries a POST request after a timeout, so that orders are created twice.",
}
PARAPHRASE = "Calling the average function with no elements crashes: division by zero in `mean`, for an empty sequence."


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "memory.db")


def remember(memory: Memory, directory: Path) -> list:
    with Run.read(directory) as run:
        return memory.add(run)


@pytest.fixture
def five(memory: Memory, tmp_path: Path) -> Memory:
    """Five past repairs."""
    for name, statement in ISSUES.items():
        remember(memory, recorded(tmp_path / name, task(statement)))
    return memory


class TestWords:
    def test_an_identifier_is_found_by_its_parts(self) -> None:
        assert words("parseHTTPHeader of by_zero") == ["parsehttpheader", "pars", "http", "header", "by_zero", "zero"]

    def test_the_forms_of_a_word_are_one(self) -> None:
        assert len({tuple(words(form)) for form in ("raise", "raises", "raised", "raising")}) == 1

    @given(st.text(max_size=60))
    def test_any_text_has_words_of_two_letters_at_least(self, text: str) -> None:
        assert all(len(word) > 1 for word in words(text))


class TestEpisodes:
    def test_a_paraphrased_issue_finds_the_right_repair_first_among_five(self, five: Memory) -> None:
        found = five.search(PARAPHRASE, "episode", 5)
        assert isinstance(found[0].item, Episode)
        assert found[0].item.issue == ISSUES["mean"]
        assert found[0].score > 0

    def test_a_repair_is_kept_with_its_patch_its_failures_and_its_evidence(
        self, memory: Memory, tmp_path: Path
    ) -> None:
        remember(memory, recorded(tmp_path / "run", task(ISSUES["mean"])))
        (episode,) = memory.store.items("episode")
        assert isinstance(episode, Episode)
        assert (episode.outcome, episode.files, episode.patch) == ("solved", ("means.py",), PATCH.decode())
        assert episode.failures == ("ZeroDivisionError: division by zero",)
        assert episode.evidence == "state 1, verified: 2 tests pass and 0 fail with its patch"
        (source,) = memory.store.sources().values()
        assert episode.sources == (source.id,)
        assert source.directory == str(tmp_path / "run")

    def test_a_failure_is_remembered_as_a_failure(self, memory: Memory, tmp_path: Path) -> None:
        states = (REPAIR[0], state(1, 0, 0.1, BROKEN, "changed the sign", changes=("< 0", "> 0")))
        failed = recorded(
            tmp_path / "run", task("x"), states=states, status="no_patch", stop="EXHAUSTED", verified=False
        )
        remember(memory, failed)
        (episode,) = memory.store.items("episode")
        assert isinstance(episode, Episode)
        assert (episode.outcome, episode.tried, episode.patch) == ("failed", ("changed the sign",), "")
        assert episode.files == ("means.py",)

    def test_a_patch_that_tampered_with_tests_is_not_kept(self, memory: Memory, tmp_path: Path) -> None:
        why = {"solved": False, "why": "Refused as a manipulation of the tests:\nconftest.py"}
        remember(memory, recorded(tmp_path / "a", task("x"), status="no_patch", stop="NODES", verdict=why))
        assert [each.patch for each in memory.store.items("episode")] == [""]

    @pytest.mark.parametrize(
        ("how", "why"),
        [
            ({"ended": False}, "has not ended"),
            ({"verified": False, "status": "improved"}, "was not verified"),
            ({"verified": True, "verdict": {"solved": False}}, "was not verified"),
            ({"status": "no_patch", "stop": "INTERRUPTED"}, "cut short"),
            ({"status": "no_patch", "stop": "EXHAUSTED", "states": REPAIR[:1]}, "nothing was tried"),
        ],
    )
    def test_what_was_not_verified_is_refused(self, memory: Memory, tmp_path: Path, how: dict, why: str) -> None:
        with pytest.raises(Unverified, match=why):
            remember(memory, recorded(tmp_path / "run", task("x"), **how))
        assert memory.store.sources() == {}

    def test_a_run_that_is_added_again_is_there_once(self, memory: Memory, tmp_path: Path) -> None:
        run = recorded(tmp_path / "run", task(ISSUES["mean"]), insights=["Look at the boundary."])
        first = remember(memory, run)
        assert remember(memory, run) == first == memory.store.items()


class TestAnIssueNeverFindsItself:
    @pytest.mark.parametrize(
        "asked",
        [
            task("other words entirely", id="task of " + ISSUES["mean"][:30]),
            task("\n  " + ISSUES["mean"].upper().replace(" ", "\n "), id="renamed"),
            task("Please help. " + ISSUES["mean"] + " Thank you!", id="renamed"),
            task("It <!-- hidden --> is slow", id="owner__repo-17"),
            task("quite another text", id="renamed", base="c0ffee", tags={"repo": "owner/repo"}),
            task("quite another text", id="renamed", base="c0ffee", goal_tests=("t.py::zero",)),
        ],
        ids=["id", "statement", "near text", "instance id", "commit of the repository", "commit and goal test"],
    )
    def test_however_it_is_named(self, five: Memory, tmp_path: Path, asked: object) -> None:
        """The issue at hand, an instance of the same id, and one of the same commit are in memory beside others."""
        for name, repo in (("owner__repo-17", "a/b"), ("elsewhere", "owner/repo")):
            about = task(f"{PARAPHRASE} {name}", id=name, base="c0ffee", tags={"repo": repo})
            remember(five, recorded(tmp_path / name, about, insights=[f"What {name} taught of mean."]))
        mine = Issue.of(asked)  # type: ignore[arg-type]
        theirs = [source for source in five.store.sources().values() if mine.same(source.issue)]
        assert theirs
        hidden = {source.id for source in theirs}
        for kind in ("episode", "insight", "reflection"):
            everything = {each.item.id for each in five.search(PARAPHRASE, kind, 100)}
            shown = [each.item for each in five.search(PARAPHRASE, kind, 100, mine)]
            assert not [each for each in shown if hidden & set(each.sources)]
            assert everything >= {each.id for each in shown}
        met = five.met([cluster_of("ZeroDivisionError: division by zero")], 100, mine)
        assert len(met) == 7 - len(theirs)

    def test_an_insight_that_it_shares_with_others_is_hidden_too(self, memory: Memory, tmp_path: Path) -> None:
        for name in ("mean", "date"):
            remember(memory, recorded(tmp_path / name, task(ISSUES[name]), insights=["Look at the boundary."]))
        (insight,) = memory.store.items("insight")
        assert len(insight.sources) == 2
        assert memory.search("boundary", "insight", 5, Issue.of(task(ISSUES["mean"]))) == []
        assert memory.search("boundary", "insight", 5, Issue.of(task(ISSUES["path"]))) != []

    def test_two_faults_in_one_commit_of_a_checkout_are_two_issues(self) -> None:
        one, other = (Issue.of(task(ISSUES[name], base="c0ffee", goal_tests=(name,))) for name in ("mean", "date"))
        assert not one.same(other)

    @pytest.mark.parametrize("held", ["t.py::Zero::zero[1]", "t.py::Zero::zero", "t.py::Zero", "t.py"])
    def test_a_goal_test_is_in_common_also_where_one_names_what_holds_it(self, held: str) -> None:
        one = Issue.of(task(ISSUES["mean"], base="c0ffee", goal_tests=(held,)))
        other = Issue.of(task(ISSUES["date"], base="c0ffee", goal_tests=("u.py", "t.py::Zero::zero")))
        assert one.same(other)
        assert other.same(one)
        assert not one.same(replace(other, goals=("s/t.py::Zero", "t.pyx")))

    def test_issues_of_one_template_are_not_one(self) -> None:
        form = "`{0}` in `{0}.py` does not pass its tests: 1 of 5 fail. What it should do is described in the file. {1}"
        one, other = (Issue.of(task(form.format(*each))) for each in (("sieve", "primes lost"), ("gcd", "recursion")))
        assert not one.same(other)


class TestInsights:
    def test_are_added_merged_and_dropped_with_their_sources(self) -> None:
        known = operated([], [Add("Read the whole traceback."), Add("Look at the boundary.")], "run-1")
        known = operated(known, [Add("Empty input is a boundary.")], "run-2")
        by_text = {each.text: each.id for each in known}
        merge = Merge((by_text["Look at the boundary."], by_text["Empty input is a boundary."]), "Try empty input.")
        known = operated(known, [merge, Drop(by_text["Read the whole traceback."], "too general")], "run-3")
        assert [(each.text, each.sources) for each in known] == [("Try empty input.", ("run-1", "run-2", "run-3"))]

    def test_an_operation_on_what_is_not_there_changes_nothing(self) -> None:
        known = operated([], [Add("Look.")], "run-1")
        with pytest.raises(KeyError):
            operated(known, [Merge((known[0].id,), "Look twice."), Drop(known[0].id, "")], "run-2")
        assert [each.text for each in known] == ["Look."]

    def test_a_lesson_learned_twice_is_one_insight_of_two_runs(self, memory: Memory, tmp_path: Path) -> None:
        lessons = ("Always test the empty list.", "Test the empty lists!", "Never test the empty list.")
        for number, lesson in enumerate(lessons):
            name = [*ISSUES][number]
            remember(memory, recorded(tmp_path / name, task(ISSUES[name]), insights=[lesson]))
        assert sorted((each.text, len(each.sources)) for each in memory.store.items("insight")) == [
            ("Always test the empty list.", 2),
            ("Never test the empty list.", 1),
        ]

    def test_without_summaries_they_say_what_helped(self, memory: Memory, tmp_path: Path) -> None:
        remember(memory, recorded(tmp_path / "run", task(ISSUES["mean"])))
        (insight,) = memory.store.items("insight")
        assert insight.text == (
            'Where a test fails with "ZeroDivisionError: division by zero", this helped: changed means.py: '
            "widened the comparison"
        )

    def test_claims_are_compared_by_what_they_say_and_deny(self) -> None:
        assert alike("Always clear the cache first.", "Clear the caches first")
        assert opposed("Clear the cache first.", "Do not clear the cache first.")
        assert not opposed("Clear the cache first.", "Do not touch the tests.")

    def test_one_that_fits_nothing_comes_after_those_that_fit(self, memory: Memory, tmp_path: Path) -> None:
        for name, more in (("mean", ["Clear the cache first."]), ("date", ["Read the traceback."]), ("path", [])):
            insights = ["Reproduce it.", *more]
            remember(memory, recorded(tmp_path / name, task(ISSUES[name]), insights=insights))
        found = memory.search("the cache is stale", "insight", 3)
        texts = [each.item.text for each in found if isinstance(each.item, Insight)]
        assert texts == ["Clear the cache first.", "Reproduce it.", "Read the traceback."]
        assert [each.score > 0 for each in found] == [True, False, False]


class TestAModelThatSaysWhatInsightsLearn:
    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ([{"op": "add", "text": "x", "sure": True}], "exactly the keys text"),
            ([{"op": "learn", "text": "x"}], "one of add, merge, drop"),
            ([{"op": "add", "text": " "}], "1 to 400 characters"),
            ([{"op": "merge", "ids": [], "text": "x"}], "at least one id"),
            ([{"op": "merge", "ids": ["i1", "i9"], "text": "x"}], "no insight 'i9'"),
            ([{"op": "merge", "ids": ["i1"], "text": "x"}, {"op": "drop", "id": "i1", "reason": "y"}], "named twice"),
            ([{"op": "add", "text": "x"}] * 7, "at most 6"),
            ({"op": "add", "text": "x"}, "a list"),
        ],
    )
    def test_is_read_strictly(self, given: object, why: str) -> None:
        with pytest.raises(Unreadable, match=why):
            read_operations(json.dumps({"operations": given}), {"i1"})

    def test_adds_merges_and_drops_and_is_asked_again_where_it_cannot_be_read(
        self, memory: Memory, tmp_path: Path
    ) -> None:
        remember(memory, recorded(tmp_path / "a", task(ISSUES["date"]), insights=["Dates are parsed.", "Ask twice."]))
        known = {each.searched: each.id for each in memory.store.items("insight")}
        merge = {"op": "merge", "ids": [known["Dates are parsed."]], "text": "Parse dates in one place."}
        drop = {"op": "drop", "id": known["Ask twice."], "reason": "says nothing"}
        wanted = {"operations": [merge, drop, {"op": "add", "text": "Empty input is a case."}]}
        model = ScriptedModel([answer("I merge."), answer(f"So: {json.dumps(wanted)}")])
        tally = Tally()
        with Run.read(recorded(tmp_path / "b", task(ISSUES["mean"]), insights=["Mind the gap."])) as run:
            memory.add(run, Distiller(model, tally.ask))
        assert {each.searched: len(each.sources) for each in memory.store.items("insight")} == {
            "Parse dates in one place.": 2,
            "Empty input is a case.": 1,
        }
        asked = model.heard[0][0]["content"]
        assert all(
            each in asked for each in (*known, *known.values(), "- Mind the gap.", ISSUES["mean"], PATCH.decode()[:9])
        )
        assert tally.usage.model_calls == 2

    def test_is_shown_what_failed_in_a_state_beside_what_led_from_it_to_the_solution(self, tmp_path: Path) -> None:
        failed = state(1, 0, 0.1, BROKEN, "a guess", changes=("< 0", "< 9"), notes="Still failing: t.py::zero")
        right = replace(REPAIR[1], id=2)
        alone = recorded(tmp_path / "alone", task(ISSUES["mean"]))
        both = recorded(tmp_path / "both", task(ISSUES["mean"]), states=(REPAIR[0], failed, right))
        asked = list[str]()
        for path in (alone, both):
            model = ScriptedModel([answer('{"operations": []}')])
            with Run.read(path) as run:
                Memory(tmp_path / f"{path.name}.db").add(run, Distiller(model))
            asked.append(str(model.heard[0][0]["content"]))
        contrast = (
            "In one state this led to the solution:\n\nmeans.py\n- < 0\n+ <= 0\n\n"
            "And this, tried in the same state, did not:\n\nmeans.py\n- < 0\n+ < 9\n\n"
            "What was said of that: Still failing: t.py::zero\n"
        )
        assert [contrast in each for each in asked] == [False, True]

    def test_that_gives_no_answer_leaves_it_to_the_lessons(self, memory: Memory, tmp_path: Path) -> None:
        model = ScriptedModel([answer("no")] * 3)
        with Run.read(recorded(tmp_path / "b", task(ISSUES["mean"]), insights=["Mind the gap."])) as run:
            memory.add(run, Distiller(model))
        assert [each.searched for each in memory.store.items("insight")] == ["Mind the gap."]

    def test_is_not_shown_what_comes_from_the_run_itself(self, memory: Memory, tmp_path: Path) -> None:
        run = recorded(tmp_path / "a", task(ISSUES["date"]), insights=["Dates are parsed."])
        remember(memory, run)
        (insight,) = memory.store.items("insight")
        drop = {"operations": [{"op": "drop", "id": insight.id, "reason": "x"}]}
        with Run.read(run) as opened:
            memory.add(opened, Distiller(ScriptedModel([answer(json.dumps(drop))] * 3)))
        assert memory.store.items("insight") == [insight]


class TestReflections:
    COLLAPSED = (
        state(0, None, 0.1, BROKEN, "base"),
        state(1, 0, 0.7, BROKEN, "half of it", parts={"tests": 0.3}),
        state(2, 1, 0.05, BROKEN, "rewrote the parser", notes="Broken: t.py::some"),
        state(3, 1, 0.68, BROKEN, "a comment"),
    )

    def reflections(self, memory: Memory, tmp_path: Path, **given: object) -> list[Reflection]:
        run = recorded(
            tmp_path / "run", task(ISSUES["date"]), states=self.COLLAPSED, status="no_patch", stop="NODES", **given
        )
        return [each for each in remember(memory, run) if isinstance(each, Reflection)]

    def test_name_the_state_whose_value_collapsed_and_both_values(self, memory: Memory, tmp_path: Path) -> None:
        found = {each.node: each for each in self.reflections(memory, tmp_path)}
        assert set(found) == {1, 2}
        worst = found[2]
        assert (worst.predicted, worst.measured, worst.basis) == (0.7, 0.05, "judge")
        assert (worst.done, worst.said) == ("rewrote the parser", "Broken: t.py::some")

    def test_are_made_of_small_differences_where_values_lie_close_together(
        self, memory: Memory, tmp_path: Path
    ) -> None:
        near = (state(0, None, 0.1, BROKEN, "base"), state(1, 0, 0.0, BROKEN), state(2, 0, 0.095, BROKEN))
        run = recorded(tmp_path / "run", task(ISSUES["date"]), states=near, status="no_patch", stop="NODES")
        assert [each.node for each in remember(memory, run) if isinstance(each, Reflection)] == [1]

    def test_predict_what_the_search_held_the_parent_for(self, memory: Memory, tmp_path: Path) -> None:
        choice = Choice(1, reasons=(Reason(1, {"score": 2.0, "value": 0.9}), Reason(1, {"score": 1.0})))
        found = {each.node: each for each in self.reflections(memory, tmp_path, choices={2: choice})}
        assert (found[2].predicted, found[2].basis) == (0.9, "search")

    def test_are_found_by_the_issue(self, memory: Memory, tmp_path: Path) -> None:
        self.reflections(memory, tmp_path)
        (first, *_) = memory.search("week dates are not accepted by parse_date", "reflection", 1)
        assert isinstance(first.item, Reflection)
        assert first.item.node in (1, 2)


class TestExperiences:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("KeyError: 'name'", 'KeyError: "address of the client"'),
            ("FileNotFoundError: /tmp/a1/x.txt:12", "FileNotFoundError: /home/b/other.cfg:7"),
            (
                "TypeError: <Node object at 0x7f1c2a> is not callable",
                "TypeError: <Node object at 0xdead> is not callable",
            ),
            ("assert 3 == -2.5", "assert 17 == 4"),
        ],
    )
    def test_variants_of_an_error_are_one_cluster(self, one: str, other: str) -> None:
        assert cluster_of(one) == cluster_of(other)

    @pytest.mark.parametrize("error", ["it doesn't work and can't", "IndexError: list index out of range"])
    def test_words_are_kept(self, error: str) -> None:
        assert shape_of(error) == error

    def test_other_errors_are_other_clusters(self) -> None:
        assert cluster_of("KeyError: 'a'") != cluster_of("IndexError: 'a'")

    def test_the_error_of_a_failure_is_the_line_that_says_what_went_wrong(self) -> None:
        assert (
            error_of("def test():\n>   f()\nE   \x1b[31mOSError: no\x1b[0m\nE    and more\nx.py:1: OSError")
            == "OSError: no"
        )
        assert error_of("Traceback\n  f()\npkg.BadError: no\n") == "pkg.BadError: no"
        assert error_of("E   AssertionError: assert (1, 2) == (1, 3)\nE\nE     At index 1") == (
            "AssertionError: assert (1, 2) == (1, 3)"
        )
        assert error_of("exit 3\n") == "exit 3"
        assert error_of("") == ""

    def test_a_step_is_found_again_by_the_error_that_it_made_go_away(self, memory: Memory, tmp_path: Path) -> None:
        remember(memory, recorded(tmp_path / "run", task(ISSUES["mean"])))
        (met,) = memory.met([cluster_of("ZeroDivisionError: division by zero")], 3)
        assert (met.node, met.score, met.change) == (1, 0.9, "means.py\n- < 0\n+ <= 0")
        assert memory.met([cluster_of("KeyError: 1")], 3) == []

    def test_a_step_that_gained_too_little_is_refused(self, memory: Memory, tmp_path: Path) -> None:
        gained = replace(REPAIR[1], id=1, evaluation=replace(REPAIR[1].evaluation, value=0.14, solved=False))
        items = remember(memory, recorded(tmp_path / "a", task("x"), states=(REPAIR[0], gained), status="improved"))
        assert [each for each in items if isinstance(each, Experience)] == []

    def test_one_run_gives_five_at_most_the_largest_gains(self, memory: Memory, tmp_path: Path) -> None:
        kinds = [f"Error{chr(65 + n)}{chr(65 + n)}" for n in range(8)]
        broken = report({f"t.py::{kind}": f"E   {kind}: no" for kind in kinds})
        states = [state(0, None, 0.1, broken)]
        states += [
            state(n + 1, 0, 0.2 + n / 10, report({}, [f"t.py::{kind}"]), f"edit {n}") for n, kind in enumerate(kinds)
        ]
        items = remember(memory, recorded(tmp_path / "a", task("x"), states=states, status="improved"))
        kept = [each for each in items if isinstance(each, Experience)]
        assert sorted(each.done for each in kept) == [f"edit {n}" for n in range(3, 8)]


def add_one(path: str, run: str) -> None:
    remember(Memory(Path(path)), Path(run))


class TestTheFile:
    def test_several_processes_may_write_to_it_at_once_from_the_start(self, tmp_path: Path) -> None:
        runs = [recorded(tmp_path / name, task(text), insights=["Look."]) for name, text in ISSUES.items()]
        context = multiprocessing.get_context("fork")
        writers = [context.Process(target=add_one, args=(str(tmp_path / "m.db"), str(run))) for run in runs]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert [writer.exitcode for writer in writers] == [0] * 5
        store = Memory(tmp_path / "m.db", make=False).store
        assert len(store.sources()) == 5
        assert [len(each.sources) for each in store.items("insight")] == [5]

    def test_is_read_while_another_process_writes(
        self, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        remember(memory, recorded(tmp_path / "a", task(ISSUES["mean"])))
        monkeypatch.setattr("agent.learning.memory.store.WAIT_S", 0.01)
        with memory.store._writing():
            opened = Memory(memory.store.path, make=False)
            assert len(opened.search(PARAPHRASE, "episode", 1)) == 1
            with pytest.raises(MemoryUnusable, match=r"is locked; try again when the other process has finished"):
                opened.prune(ids=["nothing"])

    def test_of_a_newer_version_is_refused_by_name(self, memory: Memory) -> None:
        with sqlite3.connect(memory.store.path) as db:
            db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
        db.close()
        with pytest.raises(MemoryUnusable, match=rf"memory\.db has schema {SCHEMA + 1}.*upgrade ramify"):
            Memory(memory.store.path)

    def test_that_is_something_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("not a database, but long enough to be looked at" * 20)
        with pytest.raises(MemoryUnusable, match="file is not a database"):
            Memory(tmp_path / "text")
        with sqlite3.connect(tmp_path / "other.db") as db:
            db.execute("CREATE TABLE t (x)")
        db.close()
        before = (tmp_path / "other.db").read_bytes()
        with pytest.raises(MemoryUnusable, match="not a memory of ramify"):
            Memory(tmp_path / "other.db")
        assert (tmp_path / "other.db").read_bytes() == before
        with pytest.raises(UsageError, match="there is no memory at"):
            Memory(tmp_path / "none.db", make=False)

    def test_a_run_is_remembered_whole_or_not_at_all(self, memory: Memory, tmp_path: Path) -> None:
        remember(memory, recorded(tmp_path / "a", task(ISSUES["mean"])))
        before = memory.store.items()
        (source,) = memory.store.sources().values()

        def breaks(insights: list[Insight]) -> list[Insight]:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            memory.store.remember(source, [], breaks)
        assert memory.store.items() == before

    def test_forgets_by_age_by_run_and_by_item(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        days = iter([datetime(2026, 1, day, tzinfo=UTC) for day in (1, 10, 20, 21)])
        monkeypatch.setattr("agent.learning.memory.now", lambda: next(days))
        memory = Memory(tmp_path / "m.db")
        for name in ("mean", "date", "path"):
            remember(memory, recorded(tmp_path / name, task(ISSUES[name]), insights=["Look.", f"The {name} is wrong."]))
        assert memory.prune(older_than_days=15) == 1
        assert [len(each.sources) for each in memory.store.items("insight") if each.text == "Look."] == [2]
        assert memory.prune(runs=[str(tmp_path / "date")]) == 1
        (insight,) = [each for each in memory.store.items("insight") if each.text == "The path is wrong."]
        assert memory.prune(ids=[insight.id, "nothing"]) == 1
        assert {each.kind for each in memory.store.items()} == {"episode", "insight", "experience"}
        assert all(len(each.sources) == 1 for each in memory.store.items())
        assert memory.prune(runs=[*memory.store.sources()]) == 1
        assert memory.store.items() == []


@pytest.fixture
def ramify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command line, in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *argv: CliRunner().invoke(app, ["memory", *map(str, argv)])


class TestTheCommands:
    def test_add_search_show_prune_and_export(self, tmp_path: Path, ramify: Callable[..., Any]) -> None:
        good = recorded(tmp_path / "good", task(ISSUES["mean"]))
        bad = recorded(tmp_path / "bad", task(ISSUES["date"]), ended=False)
        memory = ("--memory", "m.db")
        added = ramify("add", good, bad, *memory)
        assert added.exit_code == 1
        assert added.stdout.splitlines() == [
            f"added {good}: 1 episode, 1 insight, 0 reflections, 1 experience",
            f"refused {bad}: it has not ended: continue it with ramify resume",
        ]
        (best, *_) = ramify("search", PARAPHRASE, "--json", *memory).stdout.splitlines()
        assert json.loads(best)["kind"] == "episode"
        assert "experience" in ramify("search", "E   ZeroDivisionError: division by zero", *memory).stdout
        listed = ramify("show", *memory).stdout
        assert listed.count("\n") == 4
        assert json.loads(ramify("show", json.loads(best)["id"], *memory).stdout)["files"] == ["means.py"]
        assert ramify("export", "out.jsonl", *memory).exit_code == 0
        assert len([json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]) == 4
        assert ramify("prune", "--run", "good", *memory).stdout == "forgot 1\n"
        assert ramify("show", *memory).stdout == ""

    def test_no_text_of_a_run_gives_orders_to_the_terminal(self, tmp_path: Path, ramify: Callable[..., Any]) -> None:
        bad = "\x1b]0;title\x07changed\x1b[2J \x08means.py\r\x07\u202e"
        states = (REPAIR[0], replace(REPAIR[1], label=bad))
        run = recorded(tmp_path / "run", task("The \x1b[31mmean\x08 is wrong"), states=states, insights=[bad])
        ramify("add", run, "--memory", "m.db")
        shown = ramify("show", "--memory", "m.db").stdout + ramify("search", "mean changed", "--memory", "m.db").stdout
        assert "changed \\x08means.py \\x07\\u202e" in shown
        assert all(each.isprintable() for each in shown.splitlines())
        experience = next(each for each in Memory(tmp_path / "m.db").store.items() if isinstance(each, Experience))
        assert experience.done == "changed \\x08means.py \\x07\\u202e"

    def test_add_asks_a_model_what_the_insights_learn(
        self, tmp_path: Path, ramify: Callable[..., Any], serve: Serve
    ) -> None:
        server = serve([says(json.dumps({"operations": [{"op": "add", "text": "Empty input is a case."}]}))])
        run = recorded(tmp_path / "run", task(ISSUES["mean"]), insights=["Mind the gap."])
        named = ("--model", "openai/tiny", "-c", f"model.base_url={server.url}", "-c", "model.price=[1, 2]")
        done = ramify("add", run, "--memory", "m.db", *named)
        assert done.stdout.splitlines()[1:] == ["asked openai/tiny: 1 call, 1100 tokens, $0.0012"]
        assert "Empty input is a case." in ramify("show", "--memory", "m.db").stdout

    def test_solve_names_a_memory_that_cannot_be_used_before_anything_else_unless_it_is_off(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        means(tmp_path / "repo")
        (tmp_path / "notes").write_text("no database" * 500)
        solve = ("solve", "--issue", "x", "--repo", "repo", "--policy", "openai/x", "--memory", "notes")
        assert isinstance(CliRunner().invoke(app, [*solve, "--out", "one"]).exception, MemoryUnusable)
        assert isinstance(CliRunner().invoke(app, [*solve, "--no-memory", "--out", "two"]).exception, ConfigError)

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (("show", "--memory", "none.db"), "there is no memory at none.db"),
            (("add", "nowhere", "--memory", "m.db"), "there is no run nowhere"),
            (("prune", "--memory", "m.db"), "say what to forget"),
        ],
    )
    def test_refuse_in_one_line(self, ramify: Callable[..., Any], argv: tuple[str, ...], said: str) -> None:
        done = ramify(*argv)
        assert isinstance(done.exception, UsageError)
        assert said in str(done.exception)
        assert (len(str(done.exception).splitlines()), done.stdout) == (1, "")
