"""The official harness as a second grader: found, asked in the words of its version, and read."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.errors import UsageError
from agent.task import Task
from benchmarks.cli.app import app
from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.predictions import Prediction, write_predictions
from benchmarks.data.sources import open_source
from benchmarks.grading.harness.agreement import agreement
from benchmarks.grading.harness.official import Harness, HarnessFailed, command, find, run
from benchmarks.grading.harness.reports import read_reports
from benchmarks.grading.verdicts import Verdict, VerdictCache, patch_digest
from sandboxes import Workspace
from tests.instances import make_benchmark

ROW = {
    "instance_id": "owner__name-1",
    "repo": "owner/name",
    "version": "1.0",
    "base_commit": "0" * 40,
    "test_patch": "",
    "FAIL_TO_PASS": '["t.py::a"]',
    "PASS_TO_PASS": "[]",
}
NEWER = {"image": "i", "log_parser": "parse_log_pytest", "eval_type": "pass_and_fail", "eval_script": "true"}
PUBLISHED = "docker.io/swebench/sweb.eval.x86_64.owner_1776_name-1:latest"


def instance(**more: str) -> Instance:
    hidden = Hidden(("t.py::a",), (), b"", b"", row={**ROW, **more})
    return Instance(Task("owner__name-1", "", Workspace(), "pytest"), hidden)


def stand_in(folder: Path, version: str, program: str = "raise SystemExit(3)") -> str:
    """An interpreter that has a swebench: this one, before whose packages goes a folder with that."""
    package = folder / "site" / "swebench" / "harness"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "run_evaluation.py").write_text(program)
    metadata = folder / "site" / f"swebench-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: swebench\nVersion: {version}\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder}/site exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(python)


def test_the_version_is_read_from_the_interpreter_that_is_named(tmp_path: Path) -> None:
    found = find(stand_in(tmp_path, "5.0.2"))
    assert (found.version, found.major, found.name) == ("5.0.2", 5, "swebench-5.0.2")


def test_an_interpreter_without_it_is_an_error_that_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no swebench; make it an environment .* --harness-python"):
        find(sys.executable)
    with pytest.raises(UsageError, match="cannot ask /nowhere/python"):
        find("/nowhere/python")
    with pytest.raises(UsageError, match=r"swebench 3\.0\.1; only versions 4 and 5 are supported"):
        find(stand_in(tmp_path, "3.0.1"))


def test_each_version_is_asked_in_its_own_words() -> None:
    older = command(Harness("py", "4.1.0"), "r", [PUBLISHED, "other/sweb.eval.x86_64.b:v2"][:1], workers=2)
    assert older[-4:] == ["--namespace", "swebench", "--instance_image_tag", "latest"]
    newer = command(Harness("py", "5.0.2"), "r", [PUBLISHED], workers=2)
    assert newer == older[:-4]
    assert newer[1:5] == ["-m", "swebench.harness.run_evaluation", "--dataset_name", "dataset.json"]


def test_images_that_version_4_would_not_find_are_named() -> None:
    harness = Harness("py", "4.1.0")
    own = command(harness, "r", ["mine/sweb.eval.x86_64.a__b-1:v2"], workers=1)
    assert own[-4:] == ["--namespace", "mine", "--instance_image_tag", "v2"]
    assert command(harness, "r", [""], workers=1)[-3] == "swebench"
    with pytest.raises(UsageError, match="not python:3; use swebench 5"):
        command(harness, "r", ["python:3"], workers=1)
    with pytest.raises(UsageError, match="images of one namespace and tag"):
        command(harness, "r", [PUBLISHED, "mine/sweb.eval.x86_64.b"], workers=1)


def test_a_row_that_lacks_what_the_version_needs_is_refused_before_anything_runs(tmp_path: Path) -> None:
    prediction = [Prediction("owner__name-1", "m", b"x")]
    with pytest.raises(UsageError, match=r"needs image, log_parser, eval_type, eval_script, .* owner__name-1 lacks"):
        run(Harness("py", "5.0.2"), [instance()], prediction, tmp_path, workers=1)


def test_a_harness_that_breaks_is_told_with_the_end_of_what_it_said(tmp_path: Path) -> None:
    harness = find(stand_in(tmp_path, "5.0.2", "raise SystemExit('no engine')"))
    with pytest.raises(HarnessFailed, match=r"exit code 1 and no report[^!]*no engine"):
        run(harness, [instance(**NEWER)], [Prediction("owner__name-1", "m", b"x")], tmp_path / "out", workers=1)


REPORTING = """
import json, os, pathlib, sys
assert os.environ.get("VIRTUAL_ENV") is None
said = dict(zip(sys.argv[1::2], sys.argv[2::2]))
rows, preds = (json.loads(pathlib.Path(said[k]).read_text()) for k in ("--dataset_name", "--predictions_path"))
run, (pred,), (row,) = said["--run_id"], preds.values(), rows
logs = pathlib.Path("logs/run_evaluation", run, pred["model_name_or_path"].replace("/", "__"), row["instance_id"])
logs.mkdir(parents=True)
(logs / "report.json").write_text(json.dumps({row["instance_id"]: {"resolved": pred["model_patch"] == "good"}}))
summary = {"schema_version": 2, "completed_ids": [row["instance_id"]], "empty_patch_ids": []}
pathlib.Path(pred["model_name_or_path"].replace("/", "__") + "." + run + ".json").write_text(json.dumps(summary))
"""


def test_the_predictions_and_rows_reach_it_and_its_verdicts_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/ours")
    harness = find(stand_in(tmp_path, "5.0.2", REPORTING))
    for patch, status in ((b"good", "resolved"), (b"bad", "unresolved")):
        predictions = [Prediction("owner__name-1", "ramify/m", patch, "hidden")]
        (verdict,) = run(harness, [instance(**NEWER)], predictions, tmp_path / "out", workers=1)
        assert (verdict.status, verdict.mode) == (status, "hidden")


def test_an_interpreter_that_is_named_from_here_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "5.0.2", REPORTING)
    monkeypatch.chdir(tmp_path)
    prediction = Prediction("owner__name-1", "m", b"good")
    (verdict,) = run(find("./python"), [instance(**NEWER)], [prediction], tmp_path / "out", workers=1)
    assert verdict.status == "resolved"


def test_no_predictions_are_no_verdicts(tmp_path: Path) -> None:
    assert run(Harness("/nowhere/python", "4.1.0"), [], [], tmp_path, workers=1) == []


SUMMING = """
import json, pathlib, sys
said = dict(zip(sys.argv[1::2], sys.argv[2::2]))
preds = json.loads(pathlib.Path(said["--predictions_path"]).read_text())
first = next(iter(preds.values()))["model_name_or_path"]
summary = {"schema_version": 2, "completed_ids": [], "empty_patch_ids": list(preds)}
pathlib.Path(first + "." + said["--run_id"] + ".json").write_text(json.dumps(summary))
"""


def test_the_summary_of_several_models_is_found_by_the_name_of_any(tmp_path: Path) -> None:
    harness = find(stand_in(tmp_path, "5.0.2", SUMMING))
    predictions = [Prediction("b", "two", b""), Prediction("a", "one", b"")]
    verdicts = run(harness, [instance(**NEWER)], predictions, tmp_path / "out", workers=1)
    assert [(each.instance_id, each.status) for each in verdicts] == [("b", "empty_patch"), ("a", "empty_patch")]


def reported(tmp_path: Path, name: str, *, report: object = None, log: str = "") -> Verdict:
    """What is read of an instance for which the harness left these files."""
    folder = tmp_path / "logs" / "ramify__m" / name
    folder.mkdir(parents=True)
    (folder / "run_instance.log").write_text(log)
    if report is not None:
        (folder / "report.json").write_text(json.dumps({name: report}))
    summary = tmp_path / "summary.json"
    completed = [] if report is None else [name]
    summary.write_text(json.dumps({"schema_version": 2, "completed_ids": completed, "empty_patch_ids": ["none"]}))
    (verdict,) = read_reports(summary, tmp_path / "logs", [Prediction(name, "ramify/m", b"x")])
    return verdict


def test_a_report_names_the_tests_that_did_not_pass(tmp_path: Path) -> None:
    lists = {"success": [], "failure": ["t.py::a"]}
    said = {"resolved": False, "tests_status": {"FAIL_TO_PASS": lists, "PASS_TO_PASS": {"success": [], "failure": []}}}
    verdict = reported(tmp_path, "a", report=said)
    assert (verdict.status, verdict.failing, verdict.broken) == ("unresolved", ("t.py::a",), ())
    assert verdict.reason == "1 test of FAIL_TO_PASS did not pass"


def test_a_log_that_the_harness_does_not_believe_is_unresolved_with_its_reason(tmp_path: Path) -> None:
    verdict = reported(tmp_path, "a", report={"resolved": False, "infra_failure_reason": "out_of_memory"})
    assert (verdict.status, verdict.reason) == ("unresolved", "the log of the tests is not believed (out_of_memory)")


def test_an_instance_without_a_report_is_told_apart_by_its_log(tmp_path: Path) -> None:
    refused = reported(tmp_path / "1", "a", log="INFO - >>>>> Patch Apply Failed:\nerror: corrupt patch at line 3\n")
    assert (refused.status, refused.reason) == ("apply_failed", "error: corrupt patch at line 3")
    late = reported(tmp_path / "2", "a", log="EvaluationError: Test timed out after 1800 seconds.\n")
    assert (late.status, late.resolved) == ("unresolved", False)
    lost = reported(tmp_path / "3", "a", log="Traceback:\ndocker.errors.APIError: no space left\n+ rm\n")
    assert (lost.status, lost.resolved, lost.reason) == ("error", None, "docker.errors.APIError: no space left")


def test_no_answer_is_no_patch(tmp_path: Path) -> None:
    assert reported(tmp_path, "none").status == "empty_patch"


def test_two_graders_are_compared_where_both_know() -> None:
    ours = [Verdict("a", "resolved", "1"), Verdict("b", "resolved", "2"), Verdict("c", "error", "3")]
    theirs = [
        Verdict("a", "resolved", "1"),
        Verdict("b", "unresolved", "2", reason="no"),
        Verdict("c", "resolved", "3"),
    ]
    found = agreement(ours, theirs, "swebench-5.0.2")
    assert list(found.lines()) == [
        "swebench-5.0.2 agrees on 1 of 2 instances",
        "differs b: resolved here, unresolved (no) there",
        "not compared c: one of the two graders failed",
    ]
    assert (found.to_json()["agree"], found.to_json()["not_compared"]) == (1, ["c"])


@pytest.mark.namespace
def test_grading_asks_both_and_says_where_they_differ(tmp_path: Path) -> None:
    folder = make_benchmark(tmp_path / "set", requirements=[], version="1.0")
    (known,) = open_source(str(folder), tmp_path / "clones").instances()
    write_predictions(tmp_path / "preds.json", [Prediction("calc-1", "m", b"x")])
    with closing(VerdictCache(tmp_path / "preds.verdicts.jsonl")) as cache:
        cache.put(known, b"x", Verdict("calc-1", "resolved", patch_digest(b"x")))
    python = stand_in(tmp_path / "other", "4.1.0", REPORTING)
    argv = ["grade", str(tmp_path / "preds.json"), "--source", str(folder), "--sandbox", "namespace"]
    told = CliRunner().invoke(app, [*argv, "--harness", "swebench", "--harness-python", python])
    assert told.stdout.splitlines() == [
        "unknown tests: 1 resolved",
        "swebench-4.1.0 agrees on 0 of 1 instance",
        "differs calc-1: resolved here, unresolved (the log of the tests is not believed) there",
    ]
    assert (tmp_path / "preds.swebench-4.1.0" / "harness.log").exists()
