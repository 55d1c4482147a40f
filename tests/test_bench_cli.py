"""`ramify bench` as a person meets it: a batch is run, graded and reported, with the tests revealed or hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from agent.errors import ConfigError, UsageError
from agent.run.paths import journal_of
from benchmarks.cli.app import app
from sandboxes import StoreFull
from tests import rows
from tests.instances import make_benchmark

pytestmark = pytest.mark.namespace

OPTIONS = ("--sandbox", "namespace", "-c", 'sandbox.env={PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"}')


def ramify_bench(*argv: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in argv], env={"COLUMNS": "200"}, catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_benchmark(tmp_path / "set", test_cmd="python3 -m pytest -q -p no:cacheprovider", requirements=[])


@pytest.mark.slow
def test_a_red_build_is_repaired_graded_and_reported(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = ramify_bench("run", folder, "--out", out, "--reveal-tests", "--max-nodes", 20, *OPTIONS)
    assert ran.exit_code == 0, ran.output
    prediction = json.loads((out / "preds.json").read_text())["calc-1"]
    assert prediction["model_name_or_path"] == "ramify/mutate/auto+revealed-tests"
    assert "test_calc.py" not in prediction["model_patch"]
    assert (out / "calc-1" / "patch.diff").read_bytes() == prediction["model_patch"].encode()

    assert f"next: ramify bench grade {out}\n" in ran.stderr
    graded = ramify_bench("grade", out, *OPTIONS)
    assert (graded.exit_code, graded.stdout) == (0, "revealed tests: 1 resolved\n")
    assert f"next: ramify bench report {out}\n" in graded.stderr
    assert "evidence: " in graded.stderr
    again = ramify_bench("regrade", out)
    assert again.stdout.splitlines()[0] == "ok  calc-1/1: resolved"
    head = again.stdout.split()[-1]
    assert (len(head), f"head {head}\n" in graded.stderr) == (64, True)
    assert ramify_bench("regrade", out, "--head", head).exit_code == 0
    assert "was added, changed or removed" in ramify_bench("regrade", out, "--head", "beef").stderr
    (out / "preds.evidence" / "calc-1" / "1" / "patch.diff").write_bytes(b"")
    found = ramify_bench("regrade", out, "--json")
    assert (found.exit_code, json.loads(found.stdout)["bundles"][0]["fault"]) == (
        1,
        "patch.diff is not what was graded",
    )
    report = json.loads(ramify_bench("report", out, "--json").stdout)
    assert [line["resolved"] for line in report["instances"]] == [True]
    assert report["batch"]["suite"] == json.loads((out / "batch.json").read_text())["suite"]
    assert f"suite {report['batch']['suite']} of {folder}" in ramify_bench("report", out).stdout

    again = ramify_bench("run", folder, "--out", out, "--reveal-tests", "--max-nodes", 20, *OPTIONS)
    assert "0 of 1 instance to do" in again.stderr


def test_predictions_whose_instances_are_not_known_are_graded_with_a_source(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "preds.json").write_text("{}")
    with pytest.raises(UsageError, match="name its instances with --source"):
        ramify_bench("grade", tmp_path / "preds.json", *OPTIONS)
    moved = tmp_path / "batch"
    moved.mkdir()
    (moved / "batch.json").write_text(json.dumps({"source": str(tmp_path / "gone"), "mode": "hidden", "model": "m"}))
    with pytest.raises(UsageError, match="gone, which no longer exists"):
        ramify_bench("grade", moved, *OPTIONS)


def test_a_policy_that_needs_a_failing_test_has_no_answer_to_hidden_ones(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = ramify_bench("run", folder, "--out", out, *OPTIONS)
    assert ran.exit_code == 0
    assert "[1/1] hidden calc-1: no patch: no test fails, and the policy" in ran.stderr
    graded = ramify_bench("grade", out, "--source", folder, *OPTIONS)
    assert graded.stdout == "hidden tests: 1 empty_patch\n"
    journal = (out / "calc-1" / "journal.jsonl").read_text()
    assert "test_add" not in journal
    begun = json.loads((out / "batch.json").read_text())
    assert (len(begun["settings"]), begun["seed"]) == (12, 0)


def test_a_batch_on_a_full_disk_is_not_begun(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreFull, match="no instance is started"):
        ramify_bench("run", folder, "--out", tmp_path / "out", "--min-free", 1e9, *OPTIONS)
    assert not (tmp_path / "out" / "batch.json").exists()


def test_the_set_itself_is_checked(folder: Path, tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    checked = ramify_bench("check", folder, "--evidence", evidence, *OPTIONS)
    assert checked.exit_code == 0
    assert checked.stdout.splitlines() == [
        "ok  calc-1: reference resolved; base fails as it should",
        "1 of 1 instance is valid",
    ]
    again = ramify_bench("regrade", evidence)
    assert again.stdout.splitlines()[:2] == ["ok  calc-1/1: resolved", "ok  calc-1/2: unresolved"]


def test_a_check_names_the_tests_that_are_misspelt_or_pass_already(tmp_path: Path) -> None:
    lists = {"FAIL_TO_PASS": ["test_calc.py::test_ad", "test_calc.py::test_twice"], "PASS_TO_PASS": []}
    folder = make_benchmark(tmp_path / "set", requirements=[], **lists)
    checked = ramify_bench("check", folder, *OPTIONS)
    assert checked.exit_code == 1
    assert checked.stdout.startswith(
        "BAD calc-1: reference 1 test of FAIL_TO_PASS did not pass: test_calc.py::test_ad (no such test was run; did "
        "you mean test_calc.py::test_add?); base 1 test of FAIL_TO_PASS passes without a patch: "
        "test_calc.py::test_twice\n"
    )
    (folder / "calc.bundle").unlink()
    (line, _) = ramify_bench("check", folder, *OPTIONS).stdout.splitlines()
    assert line.startswith(f"BAD calc-1: the repository {folder / 'calc.bundle'} does not exist")
    assert line.count("does not exist") == 1


def test_a_missing_key_is_said_before_anything_is_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        ramify_bench("run", folder, "--out", tmp_path / "out", "--model", "anthropic/claude-sonnet-4-5", *OPTIONS)
    assert not (tmp_path / "out").exists()


def test_a_batch_without_predictions_is_not_graded_and_not_taken_for_a_run(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (folder / "calc.bundle").unlink()
    ramify_bench("run", folder, "--out", out, *OPTIONS)
    assert ramify_bench("grade", out, *OPTIONS).stdout == "there are no predictions to grade yet\n"
    with pytest.raises(UsageError, match="is a batch, and each folder in it is a run: list them with `ramify runs"):
        journal_of(out)


@pytest.mark.slow
def test_rollouts_and_rounds_are_asked_for_as_in_solve(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    waves = ("--rollouts", 2, "--rounds", 1, "-c", "tournament.votes=1")
    ran = ramify_bench("run", folder, "--out", out, "--reveal-tests", "--max-nodes", 12, *waves, *OPTIONS)
    assert ran.exit_code == 0, ran.output
    started = json.loads((out / "calc-1" / "journal.jsonl").read_text().split("\n")[0])
    assert (started["settings"]["rollouts"], started["settings"]["rounds"]) == (2, 1)
    refused = ramify_bench("run", folder, "--out", out, "--reveal-tests", "--rollouts", 0, *OPTIONS)
    assert refused.exit_code == 2


def test_an_instance_without_its_bundle_is_broken_and_left_out_until_it_is_there(folder: Path, tmp_path: Path) -> None:
    out, bundle = tmp_path / "out", folder / "calc.bundle"
    kept = bundle.rename(tmp_path / "kept.bundle")
    first = ramify_bench("run", folder, "--out", out, *OPTIONS)
    assert first.exit_code == 1
    assert f"broken, left out until the set is corrected: the repository {bundle} does not exist: put" in first.stderr
    assert "1 instance is broken (calc-1): provide what is missing, and" in first.stderr
    assert "still to do" not in first.stderr
    again = ramify_bench("run", folder, "--out", out, *OPTIONS)
    assert again.exit_code == 1
    assert f"calc-1 is still broken: the repository {bundle} does not exist" in again.stderr
    assert "0 of 1 instance to do" in again.stderr
    kept.rename(bundle)
    corrected = ramify_bench("run", folder, "--out", out, *OPTIONS)
    assert corrected.exit_code == 0, corrected.stderr


@pytest.mark.parametrize("row", [rows.CLASSIC, None], ids=["a public format", "our own"])
def test_a_batch_with_a_line_that_cannot_be_used_is_not_begun(
    folder: Path, tmp_path: Path, row: dict[str, object] | None
) -> None:
    file = folder / "instances.jsonl"
    good = json.loads(file.read_text()) if row is None else row
    lines = [good, {**good, "instance_id": "second", "FAIL_TO_PASS": "typo"}, {"instance_id": "third"}]
    file.write_text("\n\n".join(map(json.dumps, lines)))
    said = r"instances\.jsonl:3 \(second\): 'typo' is not a list of test ids \(1 other row too; .*or choose the others"
    with pytest.raises(UsageError, match=said):
        ramify_bench("run", file, "--out", tmp_path / "out", *OPTIONS)
    with pytest.raises(UsageError, match=r":5 \(third\): .*; correct it"):
        ramify_bench("run", file, "--out", tmp_path / "out", "--ids", "third", *OPTIONS)
    assert not (tmp_path / "out").exists()
