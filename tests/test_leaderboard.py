"""Submissions to SWE-bench's leaderboard: a folder made of a batch, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from agent.errors import UsageError
from agent.measure import Outcome, SuiteReport
from benchmarks.batch.batch import Attempt, Batch, Identity
from benchmarks.cli.app import app
from benchmarks.data.instances import Hidden, Mode
from benchmarks.grading.evidence import Archive
from benchmarks.grading.verdicts import Finding, VerdictCache, decide
from benchmarks.reports.leaderboard import export
from tests.instances import bare_instance
from tests.test_export_documents import shell_run

HIDDEN = Hidden(("t.py::a", "t.py::b"), ("t.py::c",), b"", b"")
SEEN = {"t.py::a": Outcome.PASSED, "t.py::b": Outcome.FAILED, "t.py::c": Outcome.PASSED}
PATCH = b"diff --git a/caf\xc3\xa9 b/caf\xc3\xa9\n"


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    return make_batch(tmp_path / "batch")


def make_batch(folder: Path, mode: Mode = "hidden") -> Path:
    """Of two instances the first was searched for, answered and graded; the second has no answer and no run."""
    batch = Batch(folder, Identity("set", mode, "ramify/openai/tiny/auto"))
    batch.record(Attempt("calc-1", "done", mode, PATCH))
    batch.record(Attempt("calc-2", "done", mode))
    batch.close()
    shell_run(folder / "calc-1")
    instance = replace(bare_instance("calc-1"), hidden=HIDDEN)
    finding = Finding(SuiteReport(SEEN, collected=3), log=b"FAILED t.py::b\n")
    verdict = decide("calc-1", PATCH, HIDDEN, finding)
    cache, archive = VerdictCache(folder / "preds.verdicts.jsonl"), Archive(folder / "preds.evidence")
    cache.put(instance, PATCH, verdict)
    archive.keep(instance, PATCH, finding, verdict)
    cache.close()
    archive.close()
    return folder


def test_a_submission_has_all_that_the_leaderboard_asks_for(batch: Path, tmp_path: Path) -> None:
    made = export(batch, tmp_path / "20261122_ramify", site="https://example.org", authors="A. Person")
    assert sorted(path.name for path in made.folder.iterdir()) == [
        "README.md", "all_preds.jsonl", "logs", "metadata.yaml", "trajs",
    ]  # fmt: skip
    rows = [json.loads(line) for line in (made.folder / "all_preds.jsonl").read_text().splitlines()]
    assert [sorted(row) for row in rows] == [["instance_id", "model_name_or_path", "model_patch"]] * 2
    assert rows[0]["model_patch"].encode() == PATCH
    metadata = yaml.safe_load((made.folder / "metadata.yaml").read_text())
    assert metadata["info"]["authors"] == "A. Person"
    assert "Resolved 0 of 2 instances (0.0%)." in (made.folder / "README.md").read_text()
    assert json.loads((made.folder / "trajs" / "calc-1.traj.json").read_text())["trajectory_format"]


def test_what_the_batch_does_not_show_is_left_to_the_person(batch: Path, tmp_path: Path) -> None:
    folder = export(batch, tmp_path / "20261122_ramify").folder
    boxes = [line for line in (folder / "README.md").read_text().splitlines() if line.startswith("- [")]
    assert [box for box in boxes if box.startswith("- [x]")] == [
        "- [x] Does not use SWE-bench test knowledge (`PASS_TO_PASS`, `FAIL_TO_PASS`): the batch was run with"
    ]
    assert len(boxes) == 4
    text = (folder / "metadata.yaml").read_text()
    open_keys = [line.split(":")[0].strip() for line in text.splitlines() if line.endswith(": null # to be filled in")]
    assert open_keys == ["site", "report", "authors", "model", "org", "os_model", "os_system", "attempts"]


def test_the_logs_are_those_of_our_own_grading_in_the_form_of_the_official_one(batch: Path, tmp_path: Path) -> None:
    logs = export(batch, tmp_path / "20261122_ramify").folder / "logs" / "calc-1"
    said = json.loads((logs / "report.json").read_text())["calc-1"]
    assert (said["resolved"], said["patch_successfully_applied"]) == (False, True)
    assert said["tests_status"]["FAIL_TO_PASS"] == {"success": ["t.py::a"], "failure": ["t.py::b"]}
    assert said["tests_status"]["PASS_TO_PASS"] == {"success": ["t.py::c"], "failure": []}
    assert (logs / "patch.diff").read_bytes() == PATCH
    assert (logs / "test_output.txt").read_bytes() == b"FAILED t.py::b\n"


def test_the_official_harness_goes_before_where_it_graded_this_very_patch(batch: Path, tmp_path: Path) -> None:
    reports = []
    for version, patch in (("5.0.2", PATCH), ("5.0.3", b"another")):
        folder = batch / f"preds.swebench-{version}" / "logs" / "run_evaluation" / "run" / "model" / "calc-1"
        folder.mkdir(parents=True)
        (folder / "patch.diff").write_bytes(patch)
        (folder / "report.json").write_text(said := json.dumps({"calc-1": {"resolved": patch == PATCH}}))
        reports.append(said)
    broken = batch / "preds.swebench-5.0.4" / "logs" / "run_evaluation" / "run" / "model" / "calc-1"
    broken.mkdir(parents=True)
    (broken / "patch.diff").write_bytes(PATCH)  # and no report: the world failed
    made = export(batch, tmp_path / "20261122_ramify")
    logs = made.folder / "logs" / "calc-1"
    assert sorted(path.name for path in logs.iterdir()) == ["patch.diff", "report.json"]
    assert (logs / "report.json").read_text() == reports[0]
    assert made.resolved == 1  # as the logs say that are sent, and not as ours


def test_what_is_missing_is_said(batch: Path, tmp_path: Path) -> None:
    (batch / "preds.verdicts.jsonl").unlink()
    out = tmp_path / "20261122_ramify"
    told = CliRunner().invoke(app, ["report", str(batch), "--export", "leaderboard", "--out", str(out)])
    assert told.exit_code == 0, told.output
    assert told.stderr.splitlines() == [
        "no verdict (ramify bench grade) of calc-1",
        "no trajectory of calc-2",
        f"still to fill in: the null values in {out / 'metadata.yaml'}, and the boxes in its README.md",
    ]
    assert "- no trajectory: calc-2" in (out / "README.md").read_text()


def test_answers_that_knew_the_failing_tests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="was run with --reveal-tests"):
        export(make_batch(tmp_path / "batch", "revealed"), tmp_path / "20261122_ramify")
    assert not (tmp_path / "20261122_ramify").exists()


def test_a_folder_that_the_leaderboard_would_not_take_is_refused(batch: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--out ramify: the leaderboard requires a folder name such as 20261122_name"):
        export(batch, tmp_path / "ramify")
    (tmp_path / "20261122_ramify").mkdir()
    with pytest.raises(UsageError, match="already exists"):
        export(batch, tmp_path / "20261122_ramify")
