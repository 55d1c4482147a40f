"""Data sets: what the command writes, what it keeps out and why, and that the same runs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.actions import Edit, Observation, Shell
from agent.cli.app import app
from agent.errors import JournalError, UsageError
from agent.learning.export.counting import Tally
from agent.learning.export.duplicates import likeness, sketch, words
from agent.learning.export.exclusions import Exclusions
from agent.learning.export.scrubbing import scrubbed
from agent.learning.export.splits import Splits, bucket
from agent.learning.export.writing import Files
from agent.run.run import Run
from agent.run.tree.evaluation import MANIPULATION
from agent.run.tree.node import Step
from tests.exporting import TASK, TOOLS, Recorder, chat_tree, edit, said, small_tree
from tests.scripted import answer

FAKE_KEY = "ghp_" + "a1B2" * 9


def export(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["export", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def refused(folder: Path, form: str, *, exclude: str = "", why: str = "") -> None:
    """An export of the folder's run without rows writes nothing, and says why."""
    out, options = folder / "out", ["--exclude", folder / exclude] if exclude else []
    with pytest.raises(UsageError, match=re.escape(f"nothing was written to {out}: ") + f".*{re.escape(why)}"):
        export(folder / "run", "--format", form, "--out", out, *options)
    assert not out.exists()


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def manifest(out: Path) -> dict:
    return json.loads((out / "manifest.json").read_text())


def solved_by(folder: Path, *texts: str, **changes: object) -> None:
    """A run whose only state is solved by these edits."""
    made = Recorder(folder, replace(TASK, **changes))
    made.add(0, 1.0, [edit(text) for text in texts])
    made.run.close()


class TestTheCommand:
    def test_writes_rows_a_manifest_and_a_card(self, tmp_path: Path) -> None:
        small_tree(tmp_path / "runs" / "a").close()
        chat_tree(tmp_path / "runs" / "b").close()
        said = export(tmp_path / "runs", "--format", "prm", "--out", tmp_path / "out")
        assert "6  " in said
        found = manifest(tmp_path / "out")
        data = (tmp_path / "out" / "train.jsonl").read_bytes()
        assert found["files"] == [{"name": "train.jsonl", "rows": 6, "sha256": hashlib.sha256(data).hexdigest()}]
        assert [(run["run"], run["states"], run["rows"]) for run in found["runs"]] == [("a", 5, 4), ("b", 3, 2)]
        card = (tmp_path / "out" / "README.md").read_text()
        assert "| MIT | 6 |" in card
        assert "Rows of several policies are mixed here." in card
        assert "- benchmarks kept out: none was named\n- licences let pass: all\n" in card
        assert "- copies left out: exact ones, and of other tasks those alike by 0.9 or more\n" in card
        assert "  - name: prompt\n    list: json\n" in card
        assert "  - name: value\n    dtype: float64\n" in card

    def test_gives_the_same_bytes_again_wherever_the_runs_are(self, tmp_path: Path) -> None:
        small_tree(tmp_path / "one" / "a").close()
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        written = []
        for name in ("one", "two"):
            export(tmp_path / name, "--format", "preference", "--out", tmp_path / f"out-{name}", "--split", "50,25,25")
            written.append({p.name: p.read_bytes() for p in (tmp_path / f"out-{name}").iterdir()})
        assert written[0] == written[1]

    def test_compares_all_runs_of_a_task_with_one_another(self, tmp_path: Path) -> None:
        """One run of the task has a solved leaf and the other has none: mean 1/2, deviation sqrt(1/2)."""
        for name, value in (("a", 1.0), ("b", 0.1)):
            made = Recorder(tmp_path / "runs" / name)
            made.add(0, value, [edit(name)])
            made.run.close()
        export(tmp_path / "runs", "--format", "grpo-tree", "--set", "w=0", "--out", tmp_path / "out")
        far = 0.5 / (0.5**0.5 + 1e-4)
        assert [row["advantage"] for row in lines(tmp_path / "out" / "train.jsonl")] == pytest.approx([far, -far])

    @pytest.mark.parametrize("other", [{"base": "f00d"}, {"statement": "Another issue"}, {"tags": {"repo": "a/b"}}])
    def test_compares_no_runs_of_tasks_that_only_have_their_id_in_common(self, tmp_path: Path, other: dict) -> None:
        for name, value, changes in (("a", 1.0, {}), ("b", 0.1, other)):
            made = Recorder(tmp_path / "runs" / name, replace(TASK, **changes))
            made.add(0, value, [edit(name)])
            made.run.close()
        export(tmp_path / "runs", "--format", "grpo-tree", "--set", "w=0", "--out", tmp_path / "out")
        assert [row["advantage"] for row in lines(tmp_path / "out" / "train.jsonl")] == [0, 0]

    def test_takes_an_option_of_the_format_under_its_old_name(self, tmp_path: Path) -> None:
        """Row formats: `-o KEY=VALUE` was an option before it was the directory."""
        made = Recorder(tmp_path / "run")
        made.add(0, 1.0, [edit("a")])
        made.run.close()
        export(tmp_path / "run", "--format", "grpo-tree", "-o", "w=0.25", "-o", tmp_path / "a=b")
        assert manifest(tmp_path / "a=b")["options"] == {"w": "0.25"}

    def test_tells_runs_of_the_same_name_apart(self, tmp_path: Path) -> None:
        for night, text in (("monday", "one"), ("tuesday", "two")):
            solved_by(tmp_path / night / "means-1", text)
        export(tmp_path / "monday", tmp_path / "tuesday", "--format", "grpo-tree", "--out", tmp_path / "out")
        found = lines(tmp_path / "out" / "train.jsonl")
        assert {row["provenance"]["run"] for row in found} == {"means-1"}
        assert len({row["group"] for row in found}) == 2
        journals = [run["journal"] for run in manifest(tmp_path / "out")["runs"]]
        assert [row["provenance"]["journal"] for row in found] == journals

    def test_gives_the_directory_that_one_is_in_its_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        small_tree(tmp_path / "means-1").close()
        monkeypatch.chdir(tmp_path / "means-1")
        export(".", "--format", "prm", "--out", tmp_path / "out")
        assert lines(tmp_path / "out" / "train.jsonl")[0]["provenance"]["run"] == "means-1"

    def test_takes_a_run_and_its_copy_once(self, tmp_path: Path) -> None:
        small_tree(tmp_path / "runs" / "a").close()
        shutil.copytree(tmp_path / "runs" / "a", tmp_path / "runs" / "b")
        export(tmp_path / "runs", "--format", "grpo-tree", "--out", tmp_path / "out")
        assert [run["run"] for run in manifest(tmp_path / "out")["runs"]] == ["a"]
        assert manifest(tmp_path / "out")["refused"] == {"the run is a copy of another": 1}

    def test_names_every_format_in_one_line(self) -> None:
        listed = export("--list").splitlines()
        assert [line.split()[0] for line in listed][:3] == ["sft", "sft-masked", "retro"]
        assert "gap=0.2" in listed[3]

    def test_says_what_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is not a run and contains no runs"):
            export(tmp_path)
        with pytest.raises(UsageError, match="is not a run and contains no runs"):
            export(tmp_path, "--format", "sft", "--out", tmp_path / "out")

    def test_never_writes_over_what_is_there(self, tmp_path: Path) -> None:
        small_tree(tmp_path / "run").close()
        with pytest.raises(UsageError, match="is not empty"):
            export(tmp_path / "run", "--format", "sft", "--out", tmp_path / "run")
        with pytest.raises(UsageError, match=r"journal\.jsonl/out cannot be made: Not a directory"):
            export(tmp_path / "run", "--format", "sft", "--out", tmp_path / "run" / "journal.jsonl" / "out")

    def test_leaves_no_file_behind_where_a_run_cannot_be_read(self, tmp_path: Path) -> None:
        small_tree(tmp_path / "runs" / "a").close()
        small_tree(tmp_path / "runs" / "b").close()
        with (tmp_path / "runs" / "b" / "journal.jsonl").open("ab") as file:
            file.write(b"{}\n")
        with pytest.raises(JournalError, match="cannot be read, since the journal is damaged"):
            export(tmp_path / "runs", "--format", "prm", "--out", tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []

    def test_passes_over_a_run_that_ended_before_there_was_anything(self, tmp_path: Path) -> None:
        Run.open(tmp_path / "run").close()
        refused(tmp_path, "prm", why="the run ended before its base state was measured (1)")

    def test_names_a_file_that_a_run_has_lost(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path / "run")
        made.add(0, 1.0, [edit("right")])
        made.note(1, "verdict", {"solved": True, "patch": made.run.journal.put_blob(b"--- a/x\n")})
        made.run.close()
        shutil.rmtree(tmp_path / "run" / "blobs")
        with pytest.raises(JournalError, match=r"blobs has no .\w+., which the journal names; put it back, or leave"):
            export(tmp_path / "run", "--format", "trajectories", "--out", tmp_path / "out")

    def test_counts_tokens_where_it_is_given_a_tokenizer(self, tmp_path: Path) -> None:
        """What stands between spaces is a token here, and the answer is a call alone."""
        tokenizers = pytest.importorskip("tokenizers")
        known = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        known.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        known.save(str(tmp_path / "tokenizer.json"))
        solved_by(tmp_path / "run", "one two three")
        export(tmp_path / "run", "--format", "sft", "--out", tmp_path / "out", "--tokenizer", tmp_path)
        counts = manifest(tmp_path / "out")["messages"]
        call = "edit {'path': 'means.py', 'old': '0', 'new': 'one two three'}"
        assert counts["answer_tokens"] == len(call.split())
        assert counts["tokens"] > counts["answer_tokens"]

    def test_says_that_a_file_is_no_tokenizer(self, tmp_path: Path) -> None:
        (tmp_path / "tokenizer.json").write_text("{}")
        small_tree(tmp_path / "run").close()
        with pytest.raises(UsageError, match=r"not a tokenizer\.json"):
            export(tmp_path / "run", "--format", "sft", "--out", tmp_path / "out", "--tokenizer", tmp_path)

    def test_counts_the_tokens_of_a_shared_turn_once(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path / "run")
        made.add(0, 0.3, [edit("shared")])
        made.add(1, 1.0, [edit("a")])
        made.add(1, 1.0, [edit("b")])
        made.run.close()
        export(tmp_path / "run", "--format", "sft", "--out", tmp_path / "out")
        counts = manifest(tmp_path / "out")["messages"]
        assert (counts["answers"], counts["distinct"], counts["messages"]) == (3, 3, 12)


class TestParquet:
    @pytest.mark.parametrize("form", ["sft", "preference", "grpo-tree", "trajectories"])
    def test_holds_the_same_rows(self, tmp_path: Path, form: str) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        small_tree(tmp_path / "run").close()
        export(tmp_path / "run", "--format", form, "--out", tmp_path / "out", "--parquet")
        read = parquet.read_table(tmp_path / "out" / "train.parquet").to_pylist()
        columns = ("messages", "prompt", "completion", "chosen", "rejected", "tools", "steps")
        for row in read:
            row["provenance"] = json.loads(row["provenance"])
            row |= {key: [json.loads(each) for each in row[key]] for key in columns if key in row}
        assert read == lines(tmp_path / "out" / "train.jsonl")
        assert [file["name"] for file in manifest(tmp_path / "out")["files"]] == ["train.jsonl", "train.parquet"]

    def test_has_the_columns_of_every_row_where_some_are_missing_in_the_first(self, tmp_path: Path) -> None:
        """OpenAI's form has no tools where none were offered."""
        parquet = pytest.importorskip("pyarrow.parquet")
        for name, tools in (("a", []), ("b", TOOLS), ("c", [])):
            made = Recorder(tmp_path / "runs" / name)
            said = answer(name, ("edit", {"path": "a", "old_str": "", "new_str": name}))
            made.add(
                0, 1.0, [made.asks(0, [{"role": "user", "content": name}], said, Edit("a", "", name), tools=tools)]
            )
            made.run.close()
        export(tmp_path / "runs", "--format", "openai", "--out", tmp_path / "out", "--parquet")
        read = parquet.read_table(tmp_path / "out" / "train.parquet").to_pylist()
        offered = [row["tools"] and [json.loads(each) for each in row["tools"]] for row in read]
        assert offered == [row.get("tools") for row in lines(tmp_path / "out" / "train.jsonl")]
        assert [row["parallel_tool_calls"] for row in read] == [None, True, None]

    def test_that_cannot_be_written_leaves_no_file_behind(self, tmp_path: Path) -> None:
        pytest.importorskip("pyarrow.parquet")
        with pytest.raises(Exception, match="convert"), Files(tmp_path, parquet=True) as files:  # noqa: PT012
            files.write("train", {"value": 1, "provenance": {}})
            files.write("train", {"value": "no number", "provenance": {}})
        assert list(tmp_path.iterdir()) == []

    def test_says_what_it_needs_before_anything_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        small_tree(tmp_path / "run").close()
        with pytest.raises(UsageError, match="pip install pyarrow"):
            export(tmp_path / "run", "--format", "sft", "--out", tmp_path / "out", "--parquet")
        assert not (tmp_path / "out").exists()


class TestSplits:
    def test_keep_a_repository_together_and_hold_on_to_it(self) -> None:
        assert (
            bucket("Someone/Means.git")
            == bucket("someone/means")
            == int(hashlib.sha256(b"someone/means").hexdigest()[:16], 16) % 100
        )
        assert {bucket(f"{place}someone/means.git") for place in ("https://example.org/", "git@example.org:")} == {
            bucket("someone/means")
        }
        names = [f"owner/{number}" for number in range(1000)]
        shares = [sum(Splits(80, 10, 10).of(name) == split for name in names) for split in ("train", "validation")]
        assert shares[0] == pytest.approx(800, abs=40)
        assert shares[1] == pytest.approx(100, abs=40)

    @pytest.mark.parametrize("text", ["90,5", "a,b,c", "90,20,-10", "90,5,6"])
    def test_that_do_not_add_up_are_refused(self, text: str) -> None:
        with pytest.raises(UsageError, match="--split"):
            Splits.read(text)

    def test_put_rows_in_files_of_their_own(self, tmp_path: Path) -> None:
        for name in ("x/one", "x/two", "x/three"):
            solved_by(tmp_path / "runs" / name[2:], name, tags={"repo": name})
        export(tmp_path / "runs", "--format", "sft", "--out", tmp_path / "out", "--split", "50,0,50", "--near", "0")
        for split, half in (("train", range(50)), ("test", range(50, 100))):
            told = [row["provenance"] for row in lines(tmp_path / "out" / f"{split}.jsonl")]
            assert all(each["bucket"] in half and each["split"] == split for each in told)


class TestWhatIsKeptOut:
    def test_rollouts_that_tamper_with_the_tests(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path / "run")
        made.add(0, 0.1, [edit("tamper")], notes=f"{MANIPULATION}\nconftest.py: added")
        made.add(1, 1.0, [edit("on top of it")])
        made.add(0, 1.0, [edit("honest")])
        made.run.close()
        export(tmp_path / "run", "--format", "prm", "--out", tmp_path / "out")
        assert [row["provenance"]["node"] for row in lines(tmp_path / "out" / "train.jsonl")] == [3]
        assert manifest(tmp_path / "out")["refused"] == {"it comes from a rollout that tampers with the tests": 2}

    def test_answers_that_build_on_such_a_rollout(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path / "run")
        made.add(0, 0.3, [edit("tamper")], notes=f"{MANIPULATION}\nconftest.py: added")
        made.add(1, 0.3, [edit("on top of it")])
        made.run.close()
        refused(tmp_path, "kto")

    def test_pairs_with_such_rollouts_in_whose_place_others_come(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path / "run")
        for number in range(3):
            made.add(0, 0.0, [edit(f"tamper {number}")], notes=f"{MANIPULATION}\nconftest.py: added")
        made.add(0, 0.1, [edit("wrong")])
        made.add(0, 1.0, [edit("right")])
        made.run.close()
        export(tmp_path / "run", "--format", "preference", "--set", "most=2", "--out", tmp_path / "out")
        (row,) = lines(tmp_path / "out" / "train.jsonl")
        assert (said(row["chosen"][0]), said(row["rejected"][0])) == ("right", "wrong")
        assert manifest(tmp_path / "out")["refused"] == {"it comes from a rollout that tampers with the tests": 3}

    def test_solved_states_of_such_rollouts_but_not_what_they_share_with_others(self, tmp_path: Path) -> None:
        made = Recorder(tmp_path / "run")
        made.add(0, 0.3, [edit("shared")])
        made.add(1, 0.1, [edit("tamper")], notes=f"{MANIPULATION}\nconftest.py: added")
        made.add(2, 1.0, [edit("on top of it")])
        made.add(1, 0.3, [edit("honest")])
        made.add(4, 1.0, [edit("solved")])
        made.run.close()
        export(tmp_path / "run", "--format", "sft", "--out", tmp_path / "out")
        (row,) = lines(tmp_path / "out" / "train.jsonl")
        on = [(said(m), m.get("train", True)) for m in row["messages"] if m["role"] == "assistant"]
        assert on == [("shared", True), ("honest", True), ("solved", True)]

    def test_copies_of_a_pair_that_another_run_found_further_apart(self, tmp_path: Path) -> None:
        for name, worse in (("a", 0.1), ("b", 0.2)):
            made = Recorder(tmp_path / "runs" / name)
            made.add(0, 1.0, [edit("right")])
            made.add(0, worse, [edit("wrong")])
            made.run.close()
        export(tmp_path / "runs", "--format", "preference", "--out", tmp_path / "out")
        assert [row["margin"] for row in lines(tmp_path / "out" / "train.jsonl")] == [0.9]
        assert manifest(tmp_path / "out")["refused"] == {"an exact copy of another row": 1}

    def test_answers_that_another_run_shows_to_be_right_as_wrong_ones(self, tmp_path: Path) -> None:
        for name, value in (("a", 0.1), ("b", 1.0)):
            made = Recorder(tmp_path / "runs" / name)
            made.add(0, 0.3, [edit("good")])
            made.add(1, value, [edit(f"then {name}")])
            made.run.close()
        export(tmp_path / "runs", "--format", "kto", "--out", tmp_path / "out")
        found = [(said(row["completion"][0]), row["label"]) for row in lines(tmp_path / "out" / "train.jsonl")]
        assert found == [("good", True), ("then a", False), ("then b", True)]

    @pytest.mark.parametrize(("runs", "readings"), [("one", 1), ("all", 2)])
    def test_only_of_pairs_that_need_it_are_runs_read_twice(
        self, runs: str, readings: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small_tree(tmp_path / "run").close()
        read, read_run = list[Path](), Run.read
        monkeypatch.setattr(Run, "read", lambda path: read.append(path) or read_run(path))
        export(tmp_path / "run", "--format", "preference", "--set", f"runs={runs}", "--out", tmp_path / "out")
        assert len(read) == readings

    @pytest.mark.parametrize("form", ["sft", "trajectories"])
    def test_exact_copies(self, tmp_path: Path, form: str) -> None:
        for name in "ab":
            made = Recorder(tmp_path / "runs" / name, seed=name)
            made.add(0, 1.0, [edit("fix")])
            made.run.close()
        export(tmp_path / "runs", "--format", form, "--out", tmp_path / "out")
        assert manifest(tmp_path / "out")["refused"] == {"an exact copy of another row": 1}

    def test_copies_whose_calls_have_other_ids(self, tmp_path: Path) -> None:
        for name in "ab":
            made = Recorder(tmp_path / "runs" / name)
            said = answer("same", ("edit", {"path": "a", "old_str": "", "new_str": "x"}))
            said = replace(said, tool_calls=(replace(said.tool_calls[0], id=f"drawn-{name}"),))
            made.add(0, 1.0, [made.asks(0, [{"role": "user", "content": "Begin."}], said, Edit("a", "", "x"))])
            made.run.close()
        export(tmp_path / "runs", "--format", "sft", "--out", tmp_path / "out")
        assert manifest(tmp_path / "out")["refused"] == {"an exact copy of another row": 1}

    def test_near_copies_of_a_task_with_the_same_id_in_another_repository(self, tmp_path: Path) -> None:
        text = " ".join(f"word{n}" for n in range(80))
        for name in "ab":
            solved_by(tmp_path / "runs" / name, f"{text} {name}", statement=text, tags={"repo": f"someone/{name}"})
        export(tmp_path / "runs", "--format", "sft", "--out", tmp_path / "out")
        assert manifest(tmp_path / "out")["refused"] == {"nearly a copy of another task's row": 1}

    def test_near_copies_of_another_task_but_not_of_the_same(self, tmp_path: Path) -> None:
        text = " ".join(f"word{n}" for n in range(80))
        other = " ".join(f"other{n}" for n in range(80))
        for name, task, issue in (("a", "t1", text), ("b", "t1", text), ("c", "t2", text), ("d", "t3", other)):
            solved_by(tmp_path / "runs" / name, f"{issue} {name}", id=task, statement=issue)
        solved_by(tmp_path / "runs" / "e", f"{text} e", id="t1", statement=text)
        export(tmp_path / "runs", "--format", "sft", "--out", tmp_path / "out")
        assert [row["provenance"]["run"] for row in lines(tmp_path / "out" / "train.jsonl")] == ["a", "b", "d", "e"]
        assert manifest(tmp_path / "out")["refused"] == {"nearly a copy of another task's row": 1}

    def test_licences_that_are_not_allowed(self, tmp_path: Path) -> None:
        solved_by(tmp_path / "runs" / "a", "fix a", tags={"license": "BSD-3-Clause"})
        solved_by(tmp_path / "runs" / "b", "fix b", tags={})
        export(tmp_path / "runs", "--format", "sft", "--out", tmp_path / "out", "--allow-license", "BSD-*")
        assert manifest(tmp_path / "out")["refused"] == {"the licence unknown is not among those allowed": 1}

    @pytest.mark.parametrize("name", ["Someone/Means", "https://github.com/someone/means"])
    @pytest.mark.parametrize("tag", ["repo", "source_url"])
    def test_repositories_however_they_are_named(self, tmp_path: Path, name: str, tag: str) -> None:
        known = "someone/means" if tag == "repo" else "git@github.com:someone/means.git"
        solved_by(tmp_path / "run", "fix", tags={tag: known})
        (tmp_path / "names").write_text(f"{name}\n")
        refused(tmp_path, "sft", exclude="names")

    @pytest.mark.parametrize("name", ["means-1", "someone/means", "c0ffee"])
    def test_instances_repositories_and_commits_by_name(self, tmp_path: Path, name: str) -> None:
        small_tree(tmp_path / "run").close()
        (tmp_path / "names").write_text(f"another\n{name}\n")
        refused(tmp_path, "prm", exclude="names", why="it is of an excluded instance, repository or commit (4)")

    @pytest.mark.parametrize("key", ["patch", "problem_statement"])
    def test_patches_and_issues_of_a_benchmark(self, tmp_path: Path, key: str) -> None:
        text = " ".join(f"word{n}" for n in range(30))
        solved_by(tmp_path / "run", text, statement=f"It says: {text}")
        patch = f"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+{text}\n"
        row = {"instance_id": "other-1", key: patch if key == "patch" else text}
        (tmp_path / "bench.jsonl").write_text(json.dumps(row) + "\n")
        refused(tmp_path, "sft", exclude="bench.jsonl")

    @pytest.mark.parametrize("sign", ["", "    12\t", "src/x.py:12:", "+"])
    def test_patches_of_a_benchmark_that_were_only_read(self, tmp_path: Path, sign: str) -> None:
        rows = [" ".join(f"word{line}_{n}" for n in range(10)) for line in range(4)]
        made = Recorder(tmp_path / "run")
        seen = "\n".join(sign + row for row in rows)
        made.add(0, 1.0, [Step((Shell("cat x.py"),), (Observation(seen),)), edit("unlike it")])
        made.run.close()
        patch = "--- a/x.py\n+++ b/x.py\n@@ -1 +1,4 @@\n-old\n" + "".join(f"+{row}\n" for row in rows)
        (tmp_path / "bench.jsonl").write_text(json.dumps({"instance_id": "other-1", "patch": patch}) + "\n")
        refused(tmp_path, "sft", exclude="bench.jsonl", why="it read an issue or a patch like an excluded one (1)")

    @pytest.mark.parametrize("known", ["by an edit with the lines around it", "by the patch of a state that is gone"])
    def test_short_patches_of_a_benchmark(self, tmp_path: Path, known: str) -> None:
        patch = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n def f(x):\n-    return x < 0\n+    return x <= 0\n"
        made = Recorder(tmp_path / "run")
        if "edit" in known:
            action = Edit("x.py", "def f(x):\n    return x < 0", "def f(x):\n    return x <= 0")
            made.add(0, 1.0, [Step((action,), (Observation("Edited."),))])
        else:
            made.add(0, 1.0, [edit("unlike it")])
            made.note(1, "discarded", {"patch": made.run.journal.put_blob(patch.encode())})
        made.run.close()
        (tmp_path / "bench.jsonl").write_text(json.dumps({"instance_id": "other-1", "patch": patch}) + "\n")
        refused(tmp_path, "sft", exclude="bench.jsonl", why="a patch of it is an excluded one (1)")

    def test_secrets_which_are_replaced_and_the_same_by_the_same(self, tmp_path: Path) -> None:
        solved_by(tmp_path / "run", f"token = '{FAKE_KEY}'", f"again {FAKE_KEY}")
        said = export(tmp_path / "run", "--format", "sft", "--out", tmp_path / "out")
        text = (tmp_path / "out" / "train.jsonl").read_text()
        placeholder = f"<SECRET:{hashlib.sha256(FAKE_KEY.encode()).hexdigest()[:8]}>"
        assert (FAKE_KEY in text, text.count(placeholder)) == (False, 3)
        assert "1  with secrets" in said

    @pytest.mark.parametrize(
        "secret",
        [
            "ASIA" + "A1B2" * 4,
            "AIza" + "Sy0-_" * 7,
            "sk_live_" + "a1B2" * 6,
            "npm_" + "a1B2" * 9,
            "pypi-" + "AgEIcHlwaS5vcmc" * 5,
            "postgres://me:correct-horse@db.example.org/x",
            'curl -H "Authorization: Bearer 0123456789abcdef"',
            "aws_secret_access_key = " + "a1B2/" * 8,
        ],
    )
    def test_secrets_of_many_kinds(self, secret: str) -> None:
        clean, changed = scrubbed({"completion": [{"role": "assistant", "content": secret}], "provenance": {}})
        said = clean["completion"][0]["content"]
        assert (changed, "<SECRET:" in said) == (True, True)
        assert not any(part in said for part in ("A1B2", "Sy0", "a1B2", "AgE", "correct-horse", "0123456789abcdef"))

    @pytest.mark.parametrize(
        "text",
        [
            'f"postgres://{user}:{password}@{host}"',
            '{"Authorization": f"Bearer {token}"}',
            "https://example.org:8080/a@b",
            "http://user:$PASSWORD@localhost",
            "sk_live = AIza",
        ],
    )
    def test_secrets_but_no_place_to_put_one_in(self, text: str) -> None:
        row = {"completion": [{"role": "assistant", "content": text}], "provenance": {}}
        assert scrubbed(row) == (row, False)

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("__author__ = 'Jo <jo.doe+x@mail.corp.io>'", "__author__ = 'Jo <<EMAIL:"),
            ("in /home/jo-doe/src/app.py", "in /home/<USER:"),
            ("file:///Users/jo.doe/app.py", "file:///Users/<USER:"),
            ("C:\\Users\\jo\\app.py", "C:\\Users\\<USER:"),
            ("host=52.95.110.1:443", "host=<IP:"),
            ("from 2a01:4f8:c17:b0f::2.", "from <IP:"),
            ('"\\njo@corp.com"', '"\\n<EMAIL:'),
            ('"\\t/home/jo"', '"\\t/home/<USER:'),
        ],
    )
    def test_what_names_a_person(self, text: str, kept: str) -> None:
        clean, changed = scrubbed({"completion": [{"role": "assistant", "content": text}], "provenance": {}})
        assert (changed, clean["completion"][0]["content"][: len(kept)]) == (True, kept)
        assert not any(part in str(clean) for part in ("doe", "jo", "52.95", "4f8"))

    @pytest.mark.parametrize(
        "text",
        [
            "self.weights@x.shape",
            "git clone git@github.com:a/b.git",
            "to='user@example.com', 'a@mail.example.org'",
            "https://site.org/home/index.html",
            "os.path.join('/home/', name)",
            "127.0.0.1 10.0.0.8 192.168.1.1 0.0.0.0",
            "django==3.2.1.1, version >=1.2.3.4",
            "at 12:30:45:10, a[1::2], aa:bb:cc:dd:ee:ff",
            "999.999.999.999",
        ],
    )
    def test_nothing_that_only_looks_like_what_names_a_person(self, text: str) -> None:
        row = {"completion": [{"role": "assistant", "content": text}], "provenance": {}}
        assert scrubbed(row) == (row, False)

    def test_secrets_in_what_was_asked_of_the_model_whose_answer_stays_what_it_was(self) -> None:
        told = {"sampling": [{"key": FAKE_KEY}], "exact": True, "logprobs": [[-1.0]]}
        clean, changed = scrubbed({"completion": [], "provenance": told})
        assert (changed, clean["provenance"]["exact"], clean["provenance"]["logprobs"]) == (True, True, [[-1.0]])
        assert FAKE_KEY not in json.dumps(clean)

    def test_secrets_text_by_text_so_that_the_messages_between_them_stay(self) -> None:
        begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
        messages = [{"role": "user", "content": text} for text in (f"grep for {begin}", "kept", f"and {end}")]
        row = {"messages": messages, "provenance": {}}
        assert scrubbed(row) == (row, False)
        clean, changed = scrubbed(
            {"messages": [{"role": "user", "content": f"a {begin}\nM\n{end} b"}], "provenance": {}}
        )
        assert (changed, clean["messages"][0]["content"][:10], clean["messages"][0]["content"][-3:]) == (
            True,
            "a <SECRET:",
            "> b",
        )

    def test_secrets_in_arguments_that_are_text_which_stay_json(self) -> None:
        given = {"old": "-----BEGIN PRIVATE KEY-----", "new": "-----END PRIVATE KEY-----", "path": FAKE_KEY}
        call = {"id": "1", "type": "function", "function": {"name": "edit", "arguments": json.dumps(given)}}
        clean, _ = scrubbed({"messages": [{"role": "assistant", "tool_calls": [call]}], "provenance": {}})
        kept = json.loads(clean["messages"][0]["tool_calls"][0]["function"]["arguments"])
        assert (kept["old"], kept["new"], kept["path"][:8]) == (given["old"], given["new"], "<SECRET:")

    @pytest.mark.parametrize("name", ["task-queue-worker-deployment.yml", "the_risk-assessment-of-everything"])
    def test_secrets_but_no_words_that_end_as_one_begins(self, name: str) -> None:
        row = {"completion": [{"role": "assistant", "content": name}], "provenance": {}}
        assert scrubbed(row) == (row, False)

    def test_secrets_after_an_escape_in_a_text_that_is_quoted(self) -> None:
        row = {"completion": [{"role": "assistant", "content": f'"x\\n{FAKE_KEY}"'}], "provenance": {}}
        assert FAKE_KEY not in json.dumps(scrubbed(row)[0])

    def test_no_name_of_a_run_or_task_which_may_look_like_a_key(self) -> None:
        name = "sk-learn-means-of-nothing-divide"
        address = f"https://{FAKE_KEY}@example.org/a"
        told = {"run": name, "task": name, "source": address}
        clean, changed = scrubbed({"group": f"{name}/0", "provenance": told})
        assert (changed, clean["group"], clean["provenance"]["run"]) == (True, f"{name}/0", name)
        assert FAKE_KEY not in clean["provenance"]["source"]

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("fine\n[1, 2]\n", "line 2"),
            ("[1, 2]\n", "entry 1"),
            ("fine\n{oops\n", "line 2"),
            ("[1,\n", "not valid JSON"),
        ],
    )
    def test_nothing_by_a_file_of_exclusions_that_cannot_be_understood(
        self, tmp_path: Path, text: str, place: str
    ) -> None:
        (tmp_path / "names").write_text(text)
        with pytest.raises(UsageError, match=rf"names.*{place}"):
            Exclusions.read([tmp_path / "names"])

    def test_log_probabilities_of_an_answer_that_was_changed(self) -> None:
        row = {"completion": [FAKE_KEY], "provenance": {"logprobs": [[-1.0]]}}
        assert scrubbed(row)[0]["provenance"] == {"logprobs": [None], "exact": False}


def test_the_likeness_of_texts_is_the_share_of_their_word_triples() -> None:
    """Of 100 triples of one and 100 of the other, 50 are common: 50 of 150."""
    one, other = [f"w{n}" for n in range(102)], [f"w{n}" for n in range(50, 152)]
    assert likeness(sketch(one), sketch(other)) == pytest.approx(1 / 3, abs=0.1)
    assert likeness(sketch(one), sketch(one)) == 1.0
    assert words("If x<1:\nY") == ["if", "x", "<", "1", ":", "y"]


def test_answers_are_counted_as_distinct_by_their_words_and_not_by_the_ids_of_their_calls() -> None:
    tally, told = Tally(), {"repository": "", "license": "", "policies": [], "models": [], "task": ""}
    for number in range(2):
        call = {"id": f"drawn-{number}", "type": "function", "function": {"name": "run_tests", "arguments": {}}}
        messages = [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "done", "tool_call_id": call["id"]},
            {"role": "assistant", "content": "So."},
        ]
        tally.add("train", {"messages": messages, "provenance": told})
    assert (tally.trained["answers"], tally.trained["distinct"]) == (4, 2)
