"""Verdicts and reports: what counts as resolved, and what a table says about it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.budget import Usage
from agent.measure import Outcome, SuiteReport
from agent.run.run import Run
from benchmarks.batch.batch import Attempt, Batch, Identity
from benchmarks.cli.app import app
from benchmarks.data.instances import Hidden
from benchmarks.grading.verdicts import Verdict, VerdictCache, describe, judge, patch_digest
from benchmarks.reports import report
from tests.instances import bare_instance as instance
from tests.pages import told as events
from tests.pages import write

PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED
HIDDEN = Hidden(("t.py::new",), ("t.py::old",), b"", b"")


def ran(new: Outcome = PASSED, old: Outcome = PASSED, **fields: object) -> SuiteReport:
    made = SuiteReport({"t.py::new": new, "t.py::old": old, "t.py::other": FAILED}, collected=3)
    return replace(made, **fields)  # type: ignore[arg-type]  # fields of SuiteReport


@pytest.mark.parametrize(
    ("suite", "failing", "broken"),
    [
        (ran(), (), ()),
        (ran(new=FAILED), ("t.py::new",), ()),
        (ran(old=FAILED), (), ("t.py::old",)),
        (ran(new=SKIPPED), ("t.py::new",), ()),
        (ran(old=SKIPPED), (), ("t.py::old",)),
        (ran(valid=False, problem="no tests were collected"), ("t.py::new",), ("t.py::old",)),
        (SuiteReport(valid=False), ("t.py::new",), ("t.py::old",)),
        (SuiteReport(), ("t.py::new",), ("t.py::old",)),
    ],
)
def test_only_tests_that_passed_in_a_valid_run_count(
    suite: SuiteReport, failing: tuple[str, ...], broken: tuple[str, ...]
) -> None:
    assert judge(suite, HIDDEN) == (failing, broken)
    assert bool(describe(suite, failing, broken)) == bool(failing or broken)


@pytest.mark.parametrize(("second", "failing"), [(PASSED, ()), (FAILED, ("t.py::p[a",))])
def test_an_id_cut_at_a_space_stands_for_all_that_it_begins(second: Outcome, failing: tuple[str, ...]) -> None:
    suite = SuiteReport({"t.py::p[a b]": PASSED, "t.py::p[a c]": second, "t.py::p[ab]": FAILED})
    assert judge(suite, Hidden(("t.py::p[a",), (), b"", b""))[0] == failing


def test_a_verdict_is_kept_by_patch_and_instance(tmp_path: Path) -> None:
    one, other = instance("a"), instance("b")
    cache = VerdictCache(tmp_path / "verdicts.jsonl")
    cache.put(one, b"x", Verdict("a", "resolved", patch_digest(b"x"), failing=("t",)))
    cache.put(one, b"y", Verdict("a", "error", patch_digest(b"y")))
    cache.close()
    again = VerdictCache(tmp_path / "verdicts.jsonl")
    known = again.get(one, b"x", "hidden")
    assert known == Verdict("a", "resolved", patch_digest(b"x"), mode="hidden", failing=("t",))
    assert again.get(one, b"y", "hidden") is None
    assert again.get(other, b"x", "hidden") is None
    changed = replace(one, hidden=replace(one.hidden, fail_to_pass=("t2",)))
    assert again.get(changed, b"x", "hidden") is None
    for fields in ({"setup": ("pip install -e .",)}, {"env": {"TZ": "UTC"}}):
        place = replace(one.task.workspace, **fields)  # type: ignore[arg-type]  # fields of Workspace
        assert again.get(replace(one, task=replace(one.task, workspace=place)), b"x", "hidden") is None
    again.close()


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_wilson_interval(successes: int, trials: int, low: float, high: float) -> None:
    assert report.wilson(successes, trials) == pytest.approx((low, high), abs=1e-4)


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    made = Batch(tmp_path, Identity("set", "revealed", "ramify/mutate/best_first+revealed-tests"))
    facts = {"status": "solved", "nodes": 7, "measurements": 9, "seconds": 2.0, "cost_usd": 0.25, "stop": "solved"}
    usage = Usage(model_calls=3, tokens_in=1000, tokens_out=200)
    made.record(Attempt("b-1", "done", "revealed", b"x", facts=facts | {"flagged": 2}, usage=usage))
    made.record(Attempt("a-1", "limit", "revealed", b"", facts={**facts, "status": "no_patch", "cost_usd": 0.5}))
    made.record(Attempt("c-1", "infra", "revealed", error="SandboxLost: gone"))
    made.close()
    cache = VerdictCache(report.verdicts_file(tmp_path / "preds.json"))
    cache.put(instance("b-1"), b"x", Verdict("b-1", "resolved", patch_digest(b"x"), "revealed"))
    cache.put(instance("a-1"), b"", Verdict("a-1", "empty_patch", patch_digest(b""), "revealed", "no patch"))
    cache.put(instance("c-1"), b"z", Verdict("c-1", "resolved", patch_digest(b"z"), "revealed"))
    cache.close()
    return tmp_path


def test_the_totals_count_graded_instances_only(batch: Path) -> None:
    lines = report.read_report(batch)
    assert [(line.instance_id, line.resolved) for line in lines] == [("a-1", False), ("b-1", True), ("c-1", None)]
    sums = report.total(lines)
    assert (sums["instances"], sums["graded"], sums["resolved"], sums["solved"]) == (3, 2, 1, 1)
    assert sums["cost_usd"] == 0.75
    assert sums["states"] == {"limit": 1, "done": 1, "infra": 1}
    assert (sums["tokens"], sums["flagged"]) == (1200, 2)


def test_what_the_world_failed_to_grade_is_not_graded(batch: Path) -> None:
    row = asdict(Verdict("b-1", "error", patch_digest(b"x"), "revealed", "SandboxLost: gone"))
    with report.verdicts_file(batch / "preds.json").open("a") as verdicts:
        verdicts.write(json.dumps(row) + "\n")
    line = report.read_report(batch)[1]
    assert (line.instance_id, line.resolved, line.why) == ("b-1", None, "SandboxLost: gone")


def test_the_mode_is_on_every_line(batch: Path) -> None:
    shown = CliRunner().invoke(app, ["report", str(batch)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [["a-1", "revealed"], ["b-1", "revealed"], ["c-1", "revealed"]]
    assert lines[-1].startswith("revealed tests: 1 of 2 resolved = 50.0% (95 % interval 9.5% to 90.5%); 1 not graded")


def test_a_line_tells_what_the_instance_cost_and_what_was_refused_of_it(batch: Path) -> None:
    shown = CliRunner().invoke(app, ["report", str(batch)], env={"COLUMNS": "200"}).stdout.splitlines()
    heads, told = (re.split("  +", line.strip()) for line in (shown[0], shown[2]))
    assert dict(zip(heads, told, strict=True)) == {
        "instance": "b-1", "tests": "revealed", "state": "done", "solved": "yes", "resolved": "yes", "states": "7",
        "test runs": "9", "seconds": "2", "tokens": "1200", "dollars": "0.25", "flagged": "2", "stop": "solved",
    }  # fmt: skip


def test_a_batch_that_is_not_done_has_lines_of_what_runs_what_was_killed_and_what_waits(tmp_path: Path) -> None:
    out = tmp_path / "batch"
    made = Batch(out, Identity("set", "revealed", "m"))

    def told() -> list[list[str]]:
        shown = CliRunner().invoke(app, ["report", str(out)], env={"COLUMNS": "200"}).stdout
        return [re.split("  +", line.strip()) for line in shown.splitlines()]

    assert told()[-1] == ["no instance has been started yet"]
    made.plan(map(instance, ("a-1", "b-1", "c-1")))
    write(out / "a-1", events()[:4])
    with Run.open(out / "b-1") as run:
        for event in events()[:4]:
            run.record(event)
        lines = told()
    assert [line[:5] for line in lines[1:4]] == [
        ["a-1", "revealed", "interrupted", "?", "?"],
        ["b-1", "revealed", "running", "?", "?"],
        ["c-1", "revealed", "waiting", "?", "?"],
    ]
    assert lines[1][5] == lines[2][5] == "2"
    assert lines[-1] == [
        "revealed tests: nothing is graded yet (ramify bench grade); 1 interrupted, 1 running, 1 waiting"
    ]
    made.record(Attempt("a-1", "done", "revealed", b"x"))
    assert [line[2] for line in told()[1:4]] == ["done", "interrupted", "waiting"]
    made.close()


def test_the_report_is_one_json_object_too(batch: Path) -> None:
    shown = CliRunner().invoke(app, ["report", str(batch), "--json"])
    data = json.loads(shown.stdout)
    assert data["total"]["modes"] == ["revealed"]
    assert {line["mode"] for line in data["instances"]} == {"revealed"}
    assert data["total"]["resolved_rate"] == 0.5


ADDING = b"""diff --git a/pkg/conftest.py b/pkg/conftest.py
new file mode 100644
--- /dev/null
+++ b/pkg/conftest.py
@@ -0,0 +1 @@
+import os
"""
RENAMING = b"""diff --git a/plain.txt b/pytest.ini
similarity index 100%
rename from plain.txt
rename to pytest.ini
"""


@pytest.mark.parametrize(
    ("patch", "named"),
    [
        (ADDING, "pkg/conftest.py"),
        (ADDING.replace(b"+1 @@", b"+1,9 @@"), "pkg/conftest.py"),
        (RENAMING, "pytest.ini"),
        (ADDING.replace(b"pkg/conftest.py", b"vitest.config.ts"), "vitest.config.ts"),
        (ADDING.replace(b"pkg/conftest.py", b"pkg/calc.py"), None),
    ],
    ids=["added", "as git does not read it", "renamed", "of another language", "a source"],
)
def test_files_that_runners_go_by_are_named_where_the_patch_is_resolved(
    tmp_path: Path, patch: bytes, named: str | None
) -> None:
    made = Batch(tmp_path, Identity("set", "hidden", "m"))
    cache = VerdictCache(report.verdicts_file(tmp_path / "preds.json"))
    for name, status in (("a-1", "resolved"), ("b-1", "unresolved")):
        made.record(Attempt(name, "done", "hidden", patch))
        cache.put(instance(name), patch, Verdict(name, status, patch_digest(patch)))  # type: ignore[arg-type]  # a Status
    made.close()
    cache.close()
    shown = json.loads(CliRunner().invoke(app, ["report", str(tmp_path), "--json"]).stdout)
    assert shown["steering"] == ({"a-1": [named]} if named else {})
    assert shown["total"]["resolved"] == 1
    lines = CliRunner().invoke(app, ["report", str(tmp_path)]).stdout.splitlines()
    assert (f"  a-1: {named}" in lines) == bool(named)
