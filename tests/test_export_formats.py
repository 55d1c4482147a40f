"""The formats beyond winning paths and pairs: rows worked out by hand, of the same two small trees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from agent.actions import Edit, Observation, Shell, Write
from agent.actions.replacing import edited
from agent.analysis.minimize import NOTE, Shortened
from agent.policy.chat.dialects import TEXT
from agent.run.events import Asked, Merged, Round
from agent.run.rollouts import Briefing, RoundPlan
from agent.run.run import Run
from agent.run.tree.node import Step
from tests.exporting import Recorder, chat_tree, edit, planned, rows, said, shortened, small_tree
from tests.scripted import answer


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with small_tree(tmp_path_factory.mktemp("small") / "run") as run:
        yield run


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with chat_tree(tmp_path_factory.mktemp("chat") / "run") as run:
        yield run


def same_answers(folder: Path) -> Run:
    """Two siblings that say and do the same, one of them solved; their server gave their calls other ids."""
    made = Recorder(folder)
    for number, value in enumerate((1.0, 0.1)):
        said = answer("same", ("edit", {"path": "a", "old_str": "", "new_str": "x"}))
        said = replace(said, tool_calls=(replace(said.tool_calls[0], id=f"drawn-{number}"),))
        made.add(0, value, [made.asks(0, [{"role": "user", "content": "Begin."}], said, Edit("a", "", "x"))])
    return made.close()


def merged_tree(folder: Path) -> Run:
    """Two edits, and a merge of both that is solved.

    0 (0.1) -- 1 (0.3) -- 3 (1.0, solved: 1 with 2)
            \\- 2 (0.2)
    """
    made = Recorder(folder)
    made.add(0, 0.3, [edit("one")])
    made.add(0, 0.2, [edit("two")])
    made.add(1, 1.0, [], parents=(1, 2), kind="fuse")
    return made.close()


class TestMerges:
    """A merge has no turns: those of its path are one branch's alone."""

    @pytest.mark.parametrize(("form", "others"), [("sft", 0), ("revision", 0), ("trajectories", 1), ("critique", 1)])
    def test_are_no_outcome_of_one_branch(self, tmp_path: Path, form: str, others: int) -> None:
        with merged_tree(tmp_path) as run:
            found = rows(run, form)
        assert [row for row in found if "skipped" in row] == [{"skipped": "a merge of two branches"}]
        assert [row["provenance"]["node"] for row in found if "skipped" not in row] == [2] * others

    def test_of_parts_are_none_either_nor_is_what_was_built_on_them(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 0.3, [], kind="merge")
        made.add(1, 1.0, [edit("last")])
        with made.close() as run:
            assert rows(run, "sft") == [{"skipped": "a merge of two branches"}]

    def test_are_no_worse_way_that_could_be_taken_back(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 0.1, [], kind="partial")
        made.add(0, 1.0, [replacing("a = 1", "a = 2")])
        with made.close() as run:
            assert rows(run, "revision") == [{"skipped": "a merge of two branches"}]


class TestKto:
    def test_labels_each_answer_by_whether_it_was_on_a_way_to_a_solved_state(self, small: Run) -> None:
        found = [(said(row["completion"][0]), row["label"]) for row in rows(small, "kto")]
        assert found == [("one", True), ("two", False), ("three", True), ("four", False)]

    def test_knows_an_answer_again_by_its_words_and_not_by_the_ids_of_its_calls(self, tmp_path: Path) -> None:
        with same_answers(tmp_path) as run:
            (row,) = rows(run, "kto")
        assert (row["label"], row["provenance"]["nodes"]) == (True, [1, 2])

    def test_has_an_answer_that_two_rollouts_began_with_once(self, chat: Run) -> None:
        found = rows(chat, "kto")
        assert [(said(r["completion"][0]), r["label"]) for r in found] == [
            ("x", True),
            ("right", True),
            ("wrong", False),
        ]
        assert found[0]["provenance"]["nodes"] == [1, 2]
        assert all(len(row["completion"]) == 1 for row in found)


TRAJECTORY = [(value - 1 / 3) / ((1 / 3) ** 0.5 + 1e-4) for value in (1 / 2, 0, 1, 0)]
FORK = [sign * gap / ((2 * gap**2) ** 0.5 + 1e-4) for gap in (1 / 4, 1 / 2) for sign in (1, -1)]


class TestGrpoTree:
    """Leaves: 2 and 4 come to 0, 3 to 1. Mean 1/3, deviation sqrt(1/3). 1 is worth 1/2. Below 0 the siblings are worth
    1/2 and 0 (deviation sqrt(1/8)), below 1 they are worth 1 and 0 (sqrt(1/2))."""

    def test_has_every_step_once_with_its_reward_and_how_many_trajectories_share_it(self, small: Run) -> None:
        found = rows(small, "grpo-tree")
        told = [(r["provenance"]["node"], r["reward"], r["weight"], r["group"], r["anchor"]) for r in found]
        run = found[0]["provenance"]["journal"][:12]
        assert told == [
            (1, 0.5, 2, f"{run}/0", "digest-0"),
            (2, 0.0, 1, f"{run}/0", "digest-0"),
            (3, 1.0, 1, f"{run}/1", "digest-1"),
            (4, 0.0, 1, f"{run}/1", "digest-1"),
        ]

    def test_blends_the_advantage_at_the_fork_with_that_over_trajectories(self, small: Run) -> None:
        found = rows(small, "grpo-tree", w=0.25)
        assert [row["trajectory_advantage"] for row in found] == pytest.approx(TRAJECTORY)
        assert [row["fork_advantage"] for row in found] == pytest.approx(FORK)
        blend = [0.25 * fork + 0.75 * whole for fork, whole in zip(FORK, TRAJECTORY, strict=True)]
        assert [row["advantage"] for row in found] == pytest.approx(blend)

    def test_without_weight_on_the_fork_is_plain_grpo_which_adds_up_to_nothing_over_the_trajectories(
        self, small: Run
    ) -> None:
        found = rows(small, "grpo-tree", w=0)
        assert [row["advantage"] for row in found] == pytest.approx(TRAJECTORY)
        assert sum(row["advantage"] for row in found if row["provenance"]["node"] != 1) == pytest.approx(0, abs=1e-9)

    def test_against_parent_and_root_is_the_sum_of_both_differences(self, small: Run) -> None:
        """Of 1: (1/2 - 1/3) + (1/2 - 1/3); of 3: (1 - 1/2) + (1 - 1/3)."""
        found = rows(small, "grpo-tree", credit="tree")
        assert [row["advantage"] for row in found] == pytest.approx([1 / 3, -2 / 3, 7 / 6, -5 / 6])

    def test_within_a_state_is_added_to_that_over_trajectories(self, tmp_path: Path) -> None:
        """An edit at the root led to 3 once more, so that at the root 1/2, 0 and 1 were reached: mean and deviation are
        1/2."""
        small_tree(tmp_path / "run").close()
        with Run.open(tmp_path / "run") as run:
            run.record(Merged(0, 3, "again", "mutate/1"))
            found = rows(run, "grpo-tree", credit="anchor", w=1)
        anchor = [0, -0.5 / (0.5 + 1e-4), *FORK[2:]]
        assert [r["advantage"] for r in found] == pytest.approx(
            [a + b for a, b in zip(anchor, TRAJECTORY, strict=True)]
        )

    def test_may_count_calls_that_did_not_fail(self, tmp_path: Path) -> None:
        """Neither is solved; one call failed: rewards 0 and 0.1, so that the two are one deviation of 0.0707 apart."""
        made = Recorder(tmp_path)
        made.add(0, 0.1, [edit("a", ok=False)])
        made.add(0, 0.1, [edit("b")])
        with made.close() as run:
            found = rows(run, "grpo-tree", calls=0.1, w=1)
        assert [row["advantage"] for row in found] == pytest.approx([-0.05 / 0.07081, 0.05 / 0.07081], abs=1e-4)


class TestTrajectories:
    def test_are_all_rollouts_with_what_they_came_to(self, small: Run) -> None:
        found = rows(small, "trajectories")
        told = [(row["trajectory_id"], row["resolved"], row["value"], row["model_patch"]) for row in found]
        assert told == [("run/2", False, 0.1, None), ("run/3", True, 1.0, None), ("run/4", False, 0.1, None)]
        assert [step["value"] for step in found[1]["steps"]] == [0.1, 0.3, 1.0]
        assert [m["role"] for m in found[1]["messages"]][-2:] == ["assistant", "tool"]

    def test_have_the_patch_that_was_verified(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 1.0, [edit("a")])
        made.note(1, "verdict", {"solved": True, "patch": made.run.journal.put_blob(b"--- a/x\n")})
        with made.close() as run:
            assert rows(run, "trajectories")[0]["model_patch"] == "--- a/x\n"


class TestOpenAI:
    def test_has_arguments_as_text_and_nothing_that_its_readers_refuse(self, chat: Run) -> None:
        (row,) = rows(chat, "openai")
        assert set(row) == {"messages", "tools", "parallel_tool_calls", "provenance"}
        call = row["messages"][2]["tool_calls"][0]
        assert json.loads(call["function"]["arguments"]) == {"path": "a", "old_str": "", "new_str": "x"}
        assert set(row["messages"][2]) == {"role", "content", "tool_calls"}

    def test_weighs_what_is_not_trained_nothing(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 0.3, [edit("shared")])
        made.add(1, 1.0, [edit("a")])
        made.add(1, 1.0, [edit("b")])
        with made.close() as run:
            _, second = rows(run, "openai")
        assert [m.get("weight") for m in second["messages"] if m["role"] == "assistant"] == [0, None]

    def test_pairs_have_one_input(self, chat: Run) -> None:
        (row,) = rows(chat, "openai-preference")
        assert [m["content"] for m in row["input"]["messages"]][:2] == ["Repair it.", "It is broken."]
        assert [row[key][0]["content"] for key in ("preferred_output", "non_preferred_output")] == ["right", "wrong"]


class TestCritique:
    def test_judges_every_attempt_and_is_told_nothing_that_was_measured_after_it(self, small: Run) -> None:
        found = rows(small, "critique")
        told = [(row["provenance"]["node"], row["completion"][0]["content"], row["label"]) for row in found]
        judgements = [f"<judgement>{word}</judgement>" for word in ("NO", "YES", "NO")]
        assert told == list(zip((2, 3, 4), judgements, (False, True, False), strict=True))
        question = found[1]["prompt"][0]["content"]
        assert "mean([]) divides by zero" in question
        assert 'edit {"path": "means.py", "old_str": "0", "new_str": "three"}\n\ntool: Edited to three.' in question
        assert "Still failing" not in question

    def test_leaves_out_the_middle_of_a_long_attempt(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 1.0, [edit(f"{n} {'x' * 200}") for n in range(20)])
        with made.close() as run:
            question = rows(run, "critique", attempt_bytes=1000)[0]["prompt"][0]["content"]
        assert "bytes left out here" in question
        assert len(question) < 2500


class TestLookahead:
    def test_says_what_each_way_led_to_and_takes_the_best(self, small: Run) -> None:
        first, second = rows(small, "lookahead")
        lines = first["completion"][0]["content"].splitlines()
        assert lines[2:4] == ["- edit 1: 1 of 2 ways on from it are solved", "- edit 2: not solved, at best 0.10 of 1"]
        assert lines[-1] == "I take this one: edit 1"
        assert said(first["completion"][0]) == "one"
        assert "- edit 3: solved" in second["completion"][0]["content"].splitlines()
        assert first["branches"] == [{"node": 1, "value": 0.5}, {"node": 2, "value": 0.0}]

    def test_leaves_out_what_led_to_least_where_there_is_no_room(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        for value in (0.1, 0.2, 1.0):
            made.add(0, value, [edit(f"e{value}")], label=f"{value} " + "word " * 10)
        with made.close() as run:
            (row,) = rows(run, "lookahead", chars=330)
        text = row["completion"][0]["content"]
        assert len(text) <= 330
        assert [branch["node"] for branch in row["branches"]] == [2, 3]
        assert "... and 1 more" in text

    def test_has_nothing_to_say_where_all_ways_lead_to_the_same(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 1.0, [edit("a")])
        made.add(0, 1.0, [edit("b")])
        with made.close() as run:
            assert rows(run, "lookahead") == []


def replacing(old: str, new: str) -> Step:
    return Step((Edit("f.py", old, new),), (Observation("Edited f.py."),))


def wrong_then_right(folder: Path, wrong: list[Step], values: list[float]) -> Run:
    """Below a shared step: a way of these steps with these values, and a step to the solved state.

    0 (0.1) -- 1 (0.3) -- 2 ... (wrong)
                       \\- (1.0, solved)
    """
    made = Recorder(folder)
    above = made.add(0, 0.3, [replacing("a = 1", "a = 2")])
    for step, value in zip(wrong, values, strict=True):
        above = made.add(above, value, [step], notes="Broken: t.py::b\nassert 1 == 2")
    made.add(1, 1.0, [replacing("b = 1", "b = 2")])
    return made.close()


class TestRevision:
    def test_takes_back_the_first_wrong_step_and_trains_only_what_follows(self, tmp_path: Path) -> None:
        """2 (0.5) is better than 1 (0.3); 3 (0.2) is not better than 2, so that 4 is not in the row."""
        wrong = [replacing("b = 1", "b = 9"), replacing("c = 1", "c = 9"), replacing("d = 1", "d = 9")]
        with wrong_then_right(tmp_path, wrong, [0.5, 0.2, 0.2]) as run:
            (row,) = rows(run, "revision")
        answers = [m for m in row["messages"] if m["role"] == "assistant"]
        on = [
            (call["function"]["arguments"]["new_str"], m.get("train", True))
            for m in answers
            for call in m["tool_calls"]
        ]
        undone = [("c = 1", True), ("b = 1", True)]
        assert on == [("a = 2", False), ("b = 9", False), ("c = 9", False), *undone, ("b = 2", True)]
        assert answers[3]["content"].startswith("That was no step forward: Broken: t.py::b\nI take it back")
        assert (row["error"], row["stitched"], row["provenance"]["exact"]) == (3, True, False)

    def test_leads_to_the_solved_state_when_its_calls_are_carried_out(self, tmp_path: Path) -> None:
        wrong = [replacing("b = 1", "b = 9"), replacing("a = 2", "a = 7")]
        with wrong_then_right(tmp_path, wrong, [0.4, 0.4]) as run:
            (row,) = rows(run, "revision")
        assert row["error"] == 3
        text = "a = 1\nb = 1\n"
        for message in row["messages"]:
            for call in message.get("tool_calls", ()):
                given = call["function"]["arguments"]
                text = edited(text, given["old_str"], given["new_str"], given.get("line")).text
        assert text == "a = 2\nb = 2\n"

    def test_refuses_what_the_run_does_not_know_how_to_undo(self, tmp_path: Path) -> None:
        whole = Step((Write("f.py", "new"),), (Observation("Replaced all of f.py."),))
        with wrong_then_right(tmp_path, [whole], [0.1]) as run:
            (row,) = rows(run, "revision")
        assert row == {"skipped": "the run does not record how to undo a change of the worse path"}

    def test_refuses_commands_that_may_have_changed_files(self, tmp_path: Path) -> None:
        moved = Step((Shell("mv f.py g.py"),), (Observation("exit code: 0"),))
        with wrong_then_right(tmp_path, [moved], [0.1]) as run:
            assert rows(run, "revision") == [{"skipped": "the worse path ran a shell command that changed files"}]

    def test_refuses_a_turn_of_which_it_is_not_known_what_its_calls_did(self, tmp_path: Path) -> None:
        cut_off = Step((Edit("f.py", "b = 1", "b = 9"), Edit("f.py", "c = 1", "c = 9")), (Observation("Edited f.py."),))
        with wrong_then_right(tmp_path, [cut_off], [0.1]) as run:
            assert rows(run, "revision") == [{"skipped": "not all actions of the worse path were carried out"}]

    def test_passes_over_what_was_tried_after_the_task_was_solved(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 1.0, [replacing("a = 1", "a = 2")])
        made.add(1, 0.1, [replacing("b = 1", "b = 9")])
        with made.close() as run:
            assert rows(run, "revision") == [{"skipped": "no rollout of the run is worse than the right one"}]

    def test_makes_as_many_rows_as_it_may_whatever_is_refused(self, tmp_path: Path) -> None:
        whole = Step((Write("f.py", "new"),), (Observation("Replaced all of f.py."),))
        made = Recorder(tmp_path)
        for step in (whole, replacing("b = 1", "b = 9"), replacing("c = 1", "c = 9")):
            made.add(0, 0.1, [step])
        made.add(0, 1.0, [replacing("a = 1", "a = 2")])
        with made.close() as run:
            assert [row.get("error") for row in rows(run, "revision", pairs=1)] == [None, 2]

    def test_speaks_as_a_model_without_tools_where_it_had_none(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        for value, new in ((0.1, "b = 9"), (1.0, "a = 2")):
            said = answer(TEXT.render_turn("0", "So.", [Edit("f.py", "x", new)])["content"])
            made.add(
                0, value, [made.asks(0, [{"role": "user", "content": "?"}], said, Edit("f.py", "x", new), tools=[])]
            )
        with made.close() as run:
            (row,) = rows(run, "revision")
        assert not any("tool_calls" in message for message in row["messages"])
        assert [message["role"] for message in row["messages"]] == ["user", *["assistant", "user"] * 2, "assistant"]
        assert "<parameter=old_str>\nb = 9\n" in row["messages"][3]["content"]

    def test_refuses_a_way_on_which_nothing_was_wrong(self, tmp_path: Path) -> None:
        with wrong_then_right(tmp_path, [replacing("b = 1", "b = 9")], [0.4]) as run:
            assert rows(run, "revision") == [{"skipped": "no wrong step was found on the worse path"}]

    def test_passes_over_leaves_that_are_hardly_worse(self, tmp_path: Path) -> None:
        with wrong_then_right(tmp_path, [replacing("b = 1", "b = 9")], [0.2]) as run:
            assert rows(run, "revision", gap=0.8) == [{"skipped": "no rollout of the run is worse than the right one"}]
            assert len(rows(run, "revision", gap=0.79)) == 1


class TestTraversal:
    """1 and 2 begin at the unchanged code, 3 and 4 (solved) at 1."""

    def searched(self, folder: Path, **steps: Step) -> Run:
        made = Recorder(folder)
        made.add(0, 0.3, [replacing("a = 1", "a = 2")], notes="Still failing: t.py::b\nassert 1 == 2")
        made.add(0, 0.1, [steps.get("two", replacing("b = 1", "b = 9"))])
        made.add(1, 0.2, [replacing("c = 1", "c = 9")])
        made.add(1, 1.0, [replacing("b = 1", "b = 2")])
        return made.close()

    def test_its_calls_lead_through_the_files_of_the_states_in_the_order_of_the_visits(self, tmp_path: Path) -> None:
        with self.searched(tmp_path) as run:
            (row,) = rows(run, "traversal")
        assert (row["visits"], row["stitched"], row["provenance"]["exact"]) == ([1, 2, 3, 4], True, False)
        text, seen = "a = 1\nb = 1\nc = 1\n", []
        for message in row["messages"]:
            for call in message.get("tool_calls", ()):
                given = call["function"]["arguments"]
                text = edited(text, given["old_str"], given["new_str"], given.get("line")).text
            if message.get("tool_calls"):
                seen.append([line[-1] for line in text.splitlines()])
        ways_back = [["1", "1", "1"], ["2", "1", "1"], ["2", "1", "1"]]
        visits = [["2", "1", "1"], ["1", "9", "1"], ["2", "1", "9"], ["2", "2", "1"]]
        assert seen == [visits[0], ways_back[0], visits[1], ways_back[1], visits[2], ways_back[2], visits[3]]

    def test_says_how_it_stands_and_where_it_goes_back_to(self, tmp_path: Path) -> None:
        with self.searched(tmp_path) as run:
            (row,) = rows(run, "traversal")
        said = [message["content"] for message in row["messages"] if message["role"] == "assistant"]
        assert said[1].startswith("This is how it stands here: Still failing: t.py::b\nI go back to the unchanged code")
        assert 'I go back to the state after "edit 1"' in said[3]
        assert all(message.get("train", True) for message in row["messages"])

    def test_of_a_search_that_never_went_back_is_refused(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 0.3, [replacing("a = 1", "a = 2")])
        made.add(1, 1.0, [replacing("b = 1", "b = 2")])
        with made.close() as run:
            assert rows(run, "traversal") == [{"skipped": "the search never went back"}]

    def test_is_refused_where_a_way_back_is_no_edit_or_the_search_was_too_long(self, tmp_path: Path) -> None:
        moved = Step((Shell("mv f.py g.py"),), (Observation("exit code: 0"),))
        with self.searched(tmp_path, two=moved) as run:
            assert rows(run, "traversal") == [{"skipped": "the worse path ran a shell command that changed files"}]
            assert rows(run, "traversal", states=3) == [{"skipped": "more states were visited than a row may have"}]


class TestRetro:
    def test_has_the_turns_that_were_enough_with_what_they_said_without_the_others(self, tmp_path: Path) -> None:
        with shortened(tmp_path) as run:
            (row,) = rows(run, "retro")
        opening = [(message["role"], bool(message["content"])) for message in row["messages"][:2]]
        assert opening == [("system", True), ("user", True)]
        told = [(message["role"], said(message)) for message in row["messages"][2:]]
        assert told == [
            ("assistant", "back"), ("tool", "a"), ("assistant", "right"), ("tool", "b"), ("assistant", "last")
        ]  # fmt: skip
        assert (row["left_out"], row["stitched"], row["provenance"]["nodes"]) == (1, True, [0, 1, 2])

    def test_trains_no_answer_that_the_model_was_told_to_mend(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        unread = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "unreadable"},
            {"role": "user", "content": "!"},
        ]
        said = answer("ok", ("edit", {"path": "a", "old_str": "", "new_str": "x"}))
        made.add(0, 1.0, [made.asks(0, unread, said, Edit("a", "", "x"))])
        made.note(1, NOTE, asdict(Shortened(((1, 0),), (("done",),), of=1, tried=1)))
        with made.close() as run:
            (row,) = rows(run, "retro")
        on = [(m["content"], m.get("train", True)) for m in row["messages"] if m["role"] == "assistant"]
        assert on == [("unreadable", False), ("ok", True)]

    def test_trains_a_turn_that_two_paths_begin_with_once(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path)
        made.add(0, 0.3, [edit("shared")])
        for number, text in ((2, "a"), (3, "b")):
            made.add(1, 1.0, [edit(text)])
            found = Shortened(((1, 0), (number, 0)), (("s",), ("e",)), of=2, tried=1)
            made.note(number, NOTE, asdict(found))
        with made.close() as run:
            found = rows(run, "retro")
        on = [[(said(m), m.get("train", True)) for m in row["messages"] if m["role"] == "assistant"] for row in found]
        assert on == [[("shared", True), ("a", True)], [("shared", False), ("b", True)]]

    def test_says_of_paths_that_were_not_looked_at_what_is_to_be_done(self, small: Run) -> None:
        assert rows(small, "retro") == [{"skipped": "ramify shorten has not looked at the path"}]


class TestPlans:
    def test_that_were_drawn_at_first_come_in_the_order_of_what_they_led_to(self, tmp_path: Path) -> None:
        with planned(tmp_path) as run:
            (row,) = rows(run, "plan")
        assert row["prompt"] == [{"role": "user", "content": "Write plans."}]
        text = "Plan 1: the count\n1. look at count\n\nPlan 2: the sum\n1. look at sum"
        assert (row["completion"], row["value"]) == ([{"role": "assistant", "content": text}], 1.0)

    @pytest.mark.parametrize(("value", "kept"), [(0.5, 1), (0.3, 0)])
    def test_that_were_drawn_between_rounds_are_kept_where_the_round_did_better(
        self, tmp_path: Path, value: float, kept: int
    ) -> None:
        made = Recorder(tmp_path)
        made.add(0, 0.3, [edit("first")])
        said = 'So:\n{"steps": ["change f"], "feedback": "it was g"}'
        passage = made.run.conversations.shorten([[], {"role": "user", "content": "Draw a plan."}])
        made.run.record(Asked("tiny", "r", passage, {}, answer(said), None, "plan"))
        plan = RoundPlan(steps=("change f",), feedback="it was g")
        made.run.record(Round(2, 2, Briefing(2, plan=plan)))
        made.add(0, value, [edit("second")])
        with made.close() as run:
            found = rows(run, "plan")
        assert [row["completion"][0]["content"] for row in found] == [said] * kept
