"""Sources: every public set's rows become instances, and what a solver may not know stays hidden."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import UsageError
from agent.measure import Outcome, SuiteReport
from agent.measure.logs import PARSERS
from agent.solver.result import Result
from agent.task import dump_task
from benchmarks.cli import run as cli_run
from benchmarks.data import clones
from benchmarks.data.instances import Instance
from benchmarks.data.sources import changes, images, in_full, multi, open_source
from benchmarks.data.sources.formats import FORMATS, format_of
from benchmarks.data.suites import suite_id
from benchmarks.grading.grading import grade
from benchmarks.grading.harness.script import run_script
from benchmarks.grading.validation import check
from benchmarks.grading.verdicts import judge
from sandboxes import Provider
from tests import rows
from tests.instances import git, write
from tests.test_bench_batch import halted, result, states

ROWS: dict[str, list[dict[str, Any]]] = {
    "SWE-bench": [rows.CLASSIC, rows.VERIFIED, rows.MULTIMODAL, rows.CLASSIC_GO],
    "SWE-bench 5": [rows.FIFTH, rows.MULTILINGUAL],
    "SWE-Gym": [rows.GYM],
    "SWE-smith": [rows.SMITH],
    "R2E-Gym": [rows.R2E],
    "SWE-rebench": [rows.REBENCH],
    "SWE-rebench-V2": [rows.REBENCH_2],
    "SWE-bench-Live": [rows.LIVE, rows.LIVE_MULTI, rows.LIVE_PROGRAM],
    "SWE-bench Pro": [rows.PRO],
    "Multi-SWE-bench": [rows.MULTI],
}


def read(row: dict[str, Any]) -> Instance:
    return format_of(row).read(row)


def test_there_is_a_golden_row_of_every_format() -> None:
    assert set(ROWS) == {known.name for known in FORMATS}


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, them in ROWS.items() for row in them])
def test_a_row_is_known_by_its_columns_also_where_a_table_fills_in_null(name: str, row: dict[str, Any]) -> None:
    columns = {column for them in ROWS.values() for other in them for column in other}
    assert format_of(row).name == name
    assert format_of(dict.fromkeys(columns) | row).name == name


@pytest.mark.parametrize("row", [row for them in ROWS.values() for row in them])
def test_what_decides_is_hidden_from_the_solver(row: dict[str, Any]) -> None:
    instance = read(row)
    told = json.dumps(dump_task(instance.task))
    assert "return a + b" not in told
    assert "import calc" not in told
    assert "test_add" not in told
    assert rows.HINTS not in told
    assert "return a" not in repr(instance)
    assert instance.hidden.row == row


@pytest.mark.parametrize(
    ("row", "image"),
    [
        (rows.CLASSIC, "docker.io/swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest"),
        (rows.MULTIMODAL, "docker.io/swebench/sweb.eval.x86_64.chartjs_1776_chart.js-8868:latest"),
        (rows.FIFTH, "docker.io/swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest"),
        (rows.GYM, "docker.io/xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7365:latest"),
        (
            {**rows.CLASSIC_GO, "FAIL_TO_PASS": [], "PASS_TO_PASS": []},
            "docker.io/swebench/sweb.eval.x86_64.caddyserver_1776_caddy-5870:latest",
        ),
        (rows.SMITH, "docker.io/jyangballin/swesmith.x86_64.oauthlib_1776_oauthlib.1fd52536:latest"),
        (rows.R2E, "docker.io/namanjain12/aiohttp_final:d7cd0613472fd4d9940e37f1c55921f6a1515324"),
        (rows.REBENCH, "docker.io/swerebench/sweb.eval.x86_64.0b01001001_1776_spectree-64"),
        (rows.REBENCH_2, "docker.io/swerebenchv2/unidata-netcdf-c:1925-ad6bff3"),
        (rows.LIVE, "docker.io/starryzhang/sweb.eval.x86_64.aws-cloudformation_1776_cfn-lint-3764:latest"),
        (rows.LIVE_MULTI, "docker.io/starryzhang/sweb.eval.x86_64.rs_1776_rs-1"),
        (rows.PRO, f"docker.io/jefzda/sweap-images:{rows.PRO['dockerhub_tag']}"),
        (rows.MULTI, "docker.io/mswebench/gin-gonic_m_gin:pr-4048"),
        ({**rows.CLASSIC, "docker_image": "x/c", "image_name": "x/b", "image": "x/a"}, "docker.io/x/a"),
        ({**rows.CLASSIC, "docker_image": "x/c", "image_name": "x/b"}, "docker.io/x/b"),
        ({**rows.CLASSIC, "docker_image": "registry.example.org/x/c"}, "registry.example.org/x/c"),
        ({**rows.CLASSIC, "image": "sweb.eval.x86_64.built__here-1"}, "sweb.eval.x86_64.built__here-1"),
    ],
)  # fmt: skip
def test_the_image_is_the_rows_own_or_follows_the_rule_of_its_set(row: dict[str, Any], image: str) -> None:
    assert read(row).task.workspace.image == image


@pytest.mark.parametrize(
    ("row", "mount"),
    [
        (rows.CLASSIC, "/testbed"),
        (rows.PRO, "/app"),
        (rows.REBENCH_2, "/netcdf-c"),
        (rows.MULTI, "/home/Gin"),
        (rows.R2E, "/testbed"),
    ],
)
def test_the_checkout_is_where_the_image_has_it(row: dict[str, Any], mount: str) -> None:
    workspace = read(row).task.workspace
    assert (workspace.path, workspace.mount) == (None, mount)


@pytest.mark.parametrize(
    "row", [rows.CLASSIC, rows.FIFTH, rows.MULTILINGUAL, rows.GYM, rows.REBENCH, rows.LIVE, rows.REBENCH_2]
)
def test_lists_are_read_from_json_in_a_string_and_from_lists(row: dict[str, Any]) -> None:
    hidden = read(row).hidden
    assert hidden.fail_to_pass == tuple(rows.GOAL)
    assert hidden.pass_to_pass == tuple(rows.KEPT)


@pytest.mark.parametrize(
    ("row", "language", "command"),
    [
        (rows.CLASSIC, "python", "python -m pytest"),
        (rows.MULTIMODAL, "javascript", "npm test"),
        (rows.CLASSIC_GO, "go", "go test ./..."),
        (rows.FIFTH, "python", "python -m pytest"),
        (rows.MULTILINGUAL, "go", "go test ./..."),
        (rows.GYM, "python", "python -m pytest"),
        (rows.SMITH, "python", "python -m pytest"),
        (rows.R2E, "python", "/testbed/.venv/bin/python -m pytest"),
        (rows.REBENCH, "python", "pytest"),
        (rows.REBENCH_2, "c", "set -e\nmake"),
        (rows.PRO, "python", "python -m pytest"),
        ({**rows.PRO, "repo_language": "ts"}, "typescript", "npm test"),
        ({**rows.MULTI, "language": "Go"}, "go", "bash /home/run.sh"),
    ],
)
def test_the_language_is_what_the_row_says_or_its_test_patch_is_in(
    row: dict[str, Any], language: str, command: str
) -> None:
    instance = read(row)
    assert (instance.language, instance.task.test_command.startswith(command)) == (language, True)


@pytest.mark.namespace
@pytest.mark.parametrize(
    "row",
    [
        {**rows.CLASSIC_GO, "version": "1"},
        {**rows.MULTIMODAL, "repo": "unheard/of"},
        {**rows.MULTI, "org": "unheard"},
        {**rows.MULTI, "p2p_tests": {"all tests": {"fix": "PASS"}}},
        {**rows.PRO, "repo_language": "go"},
    ],
)
def test_logs_that_nothing_here_reads_are_an_error_and_no_verdict(row: dict[str, Any], provider: Provider) -> None:
    with pytest.raises(UsageError, match=r"no parser for the test log of .*; grade it with its set's own harness"):
        run_script(read(row), b"", provider)


def test_of_a_test_patch_that_moves_and_removes_tests_what_is_left_is_run(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, {"test_old.py": b"some = 'content'\n" * 9, "test_gone.py": b"x\n", "test_kept é.py": b"x\n"})
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "base")
    git(tmp_path, "mv", "test_old.py", "test_new.py")
    git(tmp_path, "rm", "-q", "test_gone.py")
    write(tmp_path, {"test_kept é.py": b"y\n"})
    git(tmp_path, "add", "-A")
    patch = git(tmp_path, "diff", "--cached", "-M").decode()
    assert "rename from" in patch
    for row in (rows.CLASSIC, rows.REBENCH):
        command = read({**row, "test_patch": patch}).hidden.test_command
        assert command.endswith(" 'test_kept é.py' test_new.py")


def test_rows_of_the_first_generation_run_the_files_of_tests_of_their_test_patch() -> None:
    hidden = read(rows.CLASSIC).hidden
    assert hidden.test_command == "python -m pytest -q -p no:cacheprovider tests/test_calc.py"
    assert (hidden.eval_script, hidden.log_parser) == ("", "")


def test_rows_of_the_first_generation_in_other_languages_run_what_the_harness_of_then_ran() -> None:
    hidden = read({**rows.CLASSIC_GO, "version": "5870"}).hidden
    assert (hidden.log_parser, hidden.eval_type) == ("parse_log_gotest", "pass_and_fail")
    lines = hidden.eval_script.split("\n")
    assert lines.count(f"git checkout {rows.CLASSIC_GO['base_commit']} tests/calc_test.go") == 2
    start = lines.index(": '>>>>> Start Test Output'")
    assert lines[start + 1] == 'go test -v . -run "TestUnsyncedConfigAccess"'
    pictured = {"test_patch": [{"path": "a.png", "url": "https://example.org/a.png"}]}
    chart = read({**rows.MULTIMODAL, "version": "4.0", "image_assets": pictured}).hidden
    assert chart.assets == (("a.png", "https://example.org/a.png"),)
    assert (chart.log_parser, chart.eval_type) == ("parse_log_chart_js", "fail_only")


@pytest.mark.parametrize(
    ("version", "path", "command"),
    [
        ("10.10.0", "client/a/test/b.js", "jest --verbose -c=test/client/jest.config.js 'client/a/test/b.js'"),
        ("8.9.1", "client/__snapshots__/b.js.snap", "jest --verbose -c=test/client/jest.config.json 'client'"),
        ("0.8", "packages/a.js", "npm run test-packages --verbose 'packages/a.js'"),
        ("0.8", "test/e2e/a.js", "NODE_CONFIG_ENV=test npm run test test/e2e/a.js"),
    ],
)
def test_calypso_is_tested_by_a_command_for_each_file(version: str, path: str, command: str) -> None:
    patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
    row = {**rows.MULTIMODAL, "repo": "Automattic/wp-calypso", "version": version, "test_patch": patch}
    assert f"{command}\n" in read(row).hidden.eval_script


def test_a_runner_that_cannot_be_asked_is_run_by_a_script_whose_log_is_read() -> None:
    hidden = read({**rows.CLASSIC, "repo": "django/django"}).hidden
    assert hidden.log_parser == "parse_log_django"
    assert "--parallel 1 test_calc" in hidden.eval_script
    start, end = (hidden.eval_script.index(f">>>>> {word} Test Output") for word in ("Start", "End"))
    assert start < hidden.eval_script.index("runtests.py") < end
    assert hidden.eval_script.index("git apply") < start


def test_rows_of_the_fifth_generation_bring_their_script() -> None:
    instance = read(rows.FIFTH)
    hidden = instance.hidden
    assert (hidden.eval_script, hidden.eval_type) == (rows.FIFTH["eval_script"], "pass_and_fail")
    assert (hidden.log_parser, instance.version) == ("parse_log_pytest", "4.3")
    jekyll = {**rows.MULTILINGUAL, "instance_id": "jekyll__jekyll-8771", "log_parser": "parse_log_jekyll"}
    assert read(jekyll).hidden.log_parser == "parse_log_cucumber"
    with pytest.raises(ValueError, match="the eval_type 'all' is neither"):
        read({**rows.FIFTH, "eval_type": "all"})


def test_the_patch_of_swe_smith_is_the_bug_and_the_solution_takes_it_back() -> None:
    hidden = read(rows.SMITH).hidden
    assert hidden.solution.endswith("| git apply -R --whitespace=nowarn -")
    assert hidden.workspace is not None
    assert "return a + b" in hidden.workspace.setup[0]
    assert hidden.test_command.endswith("tests/test_calc.py")


def test_r2e_gym_says_how_every_test_ends_and_its_tests_are_taken_away() -> None:
    instance = read(rows.R2E)
    hidden, task = instance.hidden, instance.task
    assert (instance.id, task.statement) == ("aiohttp__d7cd0613", "**add() subtracts**")
    assert hidden.outcomes == {"TestCalc.test_add": "PASSED", "test_old": "FAILED", "test_twice": "PASSED"}
    assert hidden.fail_to_pass == ("TestCalc.test_add", "test_twice")
    assert clones.paths_of(hidden.patch) == ("calc.py",)
    assert "rm -rf /r2e_tests" in task.workspace.setup[0]
    assert hidden.workspace is not None
    assert not any("rm -rf /r2e_tests" in command for command in hidden.workspace.setup)


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({}, ()),
        ({"t.py::new": Outcome.PASSED, "t.py::late": Outcome.SKIPPED}, ()),
        ({"t.py::TestCalc::test_add": Outcome.FAILED}, ("TestCalc.test_add",)),
        ({"t.py::test_old": Outcome.PASSED}, ("test_old",)),
        ({"t.py::new": Outcome.ERROR}, ("new",)),
    ],
)
def test_every_test_of_r2e_gym_has_to_end_as_the_row_says(changed: dict[str, Outcome], failing: tuple[str]) -> None:
    ends = {"t.py::TestCalc::test_add": Outcome.PASSED, "t.py::test_old": Outcome.FAILED}
    report = SuiteReport({**ends, "t.py::test_twice": Outcome.PASSED, **changed})
    hidden = read(rows.R2E).hidden
    assert judge(report, hidden) == (failing, ())
    assert judge(replace(report, valid=False), hidden) == (tuple(hidden.outcomes), ())


def test_the_patches_that_images_of_multi_swe_bench_hold_are_removed() -> None:
    instance = read(rows.MULTI)
    assert "/home/fix.patch /home/test.patch" in instance.task.workspace.setup[0]
    assert (instance.id, instance.task.base) == ("gin-gonic__Gin-4048", "d4e41ff")
    assert instance.task.statement == "Parameters repeat\n\nThey should not."
    assert (instance.hidden.fail_to_pass, instance.hidden.pass_to_pass) == (("TestAdd", "TestNew"), ("TestTwice",))


def test_rows_of_multi_swe_bench_are_graded_by_the_scripts_in_their_images() -> None:
    hidden = read(rows.MULTI).hidden
    assert (hidden.patch_file, hidden.log_parser) == ("/home/fix.patch", "multi-go")
    assert hidden.workspace is not None
    assert (hidden.workspace.mount, hidden.workspace.setup) == ("/home/Gin", ())
    of_express = {**rows.MULTI, "org": "expressjs", "repo": "express"}
    parsers = [read({**of_express, "number": number}).hidden.log_parser for number in (4852, 4853)]
    assert parsers == ["multi-mocha", "mocha-json"]


def test_every_parser_that_a_row_of_multi_swe_bench_may_name_is_there() -> None:
    assert {*multi.PARSERS, *multi.SPECIFIC.values()} <= set(PARSERS)


def test_rows_of_pro_are_graded_by_the_programs_beside_them(tmp_path: Path) -> None:
    programs = tmp_path / "run_scripts" / rows.PRO["instance_id"]
    write(programs, {"run_script.sh": b"go test -v ./...\n", "parser.py": b"print('{}')\n"})
    write(tmp_path, {"data/rows.jsonl": json.dumps({**rows.PRO, "repo_language": "go"}).encode()})
    (instance,) = open_source(f"{tmp_path}/data/rows.jsonl", tmp_path / "clones").instances()
    hidden = instance.hidden
    assert (hidden.patch_file, hidden.log_parser, hidden.test_command) == ("/workspace/patch.diff", "told", "")
    assert "\ngit checkout f8e7fea -- tests/test_calc.py\n" in hidden.eval_script
    assert "run_script.sh tests/test_calc.py > " in hidden.eval_script
    (shown,) = open_source(f"{tmp_path}/data/rows.jsonl", tmp_path / "clones", reveal=True).instances()
    assert images.SEALED in shown.task.workspace.setup


def test_programs_that_cannot_be_read_are_a_fault_of_their_row_alone(tmp_path: Path) -> None:
    write(tmp_path / "run_scripts" / rows.PRO["instance_id"], {"run_script.sh": b"echo\n", "parser.py": b"\xff"})
    others = [{**rows.PRO, "instance_id": name} for name in ("other", "long" * 100)]
    (tmp_path / "rows.json").write_text(json.dumps([rows.PRO, *others]))
    found = list(open_source(f"{tmp_path}/rows.json", tmp_path / "clones").instances())
    assert [each.id for each in found] == ["row-1", "other", "row-3"]
    assert all("cannot be read" in found[number].fault for number in (0, 2))
    assert found[1].fault == ""


def test_the_statement_of_pro_has_what_its_tests_ask_for() -> None:
    instance = read(rows.PRO)
    assert instance.task.statement == (
        "Arguments are wrong\n\nRequirements:\n- add() adds\n\n"
        "New interfaces introduced:\nNo new interfaces are introduced"
    )
    assert (instance.hidden.fail_to_pass, instance.language) == (tuple(rows.GOAL), "python")


def test_commands_of_several_lines_end_with_the_first_that_fails() -> None:
    assert read(rows.REBENCH_2).task.test_command == "set -e\nmake\nmake check"
    printing = read(rows.LIVE_MULTI)
    assert printing.task.test_command == "cargo build; cargo test > log; ended=$?; cat log; (exit $ended)"
    assert f"cd /testbed; {printing.task.test_command}" in printing.hidden.eval_script
    assert read(rows.LIVE_MULTI).hidden.log_parser == "parse_log_cargo"
    assert read(rows.LIVE).hidden.log_parser == "parse_log_pytest"


def test_a_patch_that_lost_its_last_newline_gets_it_back() -> None:
    assert read({**rows.CLASSIC, "patch": rows.PATCH.rstrip("\n")}).hidden.patch == rows.PATCH.encode()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"a": 1, "instance_id": "x"}, r"\(a, instance_id\) fit no known set; .* lacks"),
        ({**rows.CLASSIC, "test_patch": None}, "looks like SWE-bench but has no test_patch"),
        ({**rows.FIFTH, "image": None, "log_parser": None}, "looks like SWE-bench 5 but has no image, log_parser"),
        ({**rows.MULTI, "base": None}, "looks like Multi-SWE-bench but has no base"),
    ],
)
def test_a_row_of_an_unknown_shape_is_told_what_it_lacks(row: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        format_of(row)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(sorted({c for them in ROWS.values() for r in them for c in r})), st.text()))
def test_whatever_columns_there_are_a_row_is_of_a_format_or_refused_with_a_reason(row: dict[str, Any]) -> None:
    fitting = next((known for known in FORMATS if known.fits(row)), None)
    if fitting is not None and not fitting.missing(row, fitting.needs):
        assert format_of(row) is fitting
        return
    with pytest.raises(ValueError, match=r"it lacks|has no"):
        format_of(row)


TABLES = {"rows.jsonl": lambda them: "\n".join(map(json.dumps, them)) + "\n", "rows.json": json.dumps}


@pytest.mark.parametrize("name", TABLES)
def test_a_file_of_rows_of_several_sets_is_read(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(TABLES[name]([rows.CLASSIC, rows.GYM, rows.MULTI]))
    source = open_source(str(file), tmp_path / "clones")
    assert [i.id for i in source.instances()] == ["astropy__astropy-12907", "getmoto__moto-7365", "gin-gonic__Gin-4048"]


def test_a_folder_has_a_file_a_split_and_the_part_of_the_name_chooses(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for split, row in (("dev", rows.CLASSIC), ("test", rows.GYM)):
        (tmp_path / "data" / f"{split}-00000-of-00001.jsonl").write_text(json.dumps(row))

    def ids(name: str) -> list[str]:
        return [i.id for i in open_source(name, tmp_path / "clones").instances()]

    assert ids(str(tmp_path)) == ["getmoto__moto-7365"]
    assert ids(f"{tmp_path}:dev") == ["astropy__astropy-12907"]
    with pytest.raises(UsageError, match=r"no split 'train'; it has data/dev-00000-of-00001\.jsonl, .*:SPLIT"):
        ids(f"{tmp_path}:train")


def test_one_set_in_two_forms_is_not_read_twice(tmp_path: Path) -> None:
    for name in ("lite.jsonl", "lite.json"):
        (tmp_path / name).write_text(json.dumps([rows.CLASSIC] if name.endswith("json") else rows.CLASSIC))
    with pytest.raises(UsageError, match=r"several files, and none of a split.* lite\.json, lite\.jsonl"):
        list(open_source(str(tmp_path), tmp_path / "clones").instances())


def test_parquet_is_read_with_its_lists(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    dated = {**rows.REBENCH, "created_at": datetime(2022, 3, 3, tzinfo=UTC)}
    table = arrow.Table.from_pylist([dict.fromkeys(dated) | rows.GYM | {"created_at": None}, dated])
    parquet.write_table(table, tmp_path / "test.parquet")
    first, second = open_source(str(tmp_path / "test.parquet"), tmp_path / "clones").instances()
    assert (first.hidden.fail_to_pass, second.hidden.log_parser) == (tuple(rows.GOAL), "parse_log_pytest")
    assert len(suite_id([first, second])) == 12
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    with pytest.raises(UsageError, match=r"cannot read instances from .*broken\.parquet"):
        open_source(str(tmp_path / "broken.parquet"), tmp_path / "clones")


def test_a_set_that_datasets_saved_is_read_with_all_its_parts_and_none_of_its_caches(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    for number, row in enumerate((rows.REBENCH, rows.GYM)):
        for name in (f"data-0000{number}-of-00002.arrow", f"cache-{number}.arrow"):
            table = arrow.Table.from_pylist([row])
            with arrow.OSFile(str(tmp_path / name), "wb") as file, arrow.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
    (tmp_path / "state.json").write_text("{}")
    found = list(open_source(str(tmp_path), tmp_path / "clones").instances())
    assert [each.id for each in found] == [rows.REBENCH["instance_id"], rows.GYM["instance_id"]]
    assert found[1].hidden.fail_to_pass == tuple(rows.GOAL)
    (tmp_path / "data-00000-of-00002.arrow").write_bytes(b"nothing")
    with pytest.raises(UsageError, match=r"cannot read instances from .*data-00000-of-00002\.arrow"):
        list(open_source(str(tmp_path), tmp_path / "clones").instances())


def test_parquet_without_its_library_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "test.parquet").write_bytes(b"PAR1")
    with pytest.raises(UsageError, match=r"needs pyarrow to be read: pip install pyarrow"):
        open_source(str(tmp_path / "test.parquet"), tmp_path / "clones")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"instance_id": "x"}, {"instance_id": "y"}], r"rows\.json, row 1 \(x\): its columns"),
        ([{**rows.CLASSIC, "FAIL_TO_PASS": "none"}], "row 1 .*'none' is not a list of test ids"),
        ([{**rows.CLASSIC, "FAIL_TO_PASS": "[" * 100_000}], "row 1 .* is not a list of test ids"),
        ([{**rows.CLASSIC, "instance_id": "../x"}], "cannot name a folder"),
        ([{**rows.CLASSIC, "test_patch": "no patch"}], "row 1 "),
        ([{**rows.FIFTH, "test_patch": "no patch"}], "row 1 "),
        ({"astropy": rows.CLASSIC}, "is not a JSON array of objects, one for each instance"),
    ],
)
def test_a_table_that_cannot_be_used_is_named_with_the_row(tmp_path: Path, content: object, message: str) -> None:
    (tmp_path / "rows.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=message):
        list(open_source(str(tmp_path / "rows.json"), tmp_path / "clones", reveal=True).instances())


def test_rows_of_an_array_that_are_none_leave_the_others_alone(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([7, rows.CLASSIC]))
    found = list(open_source(str(tmp_path / "rows.json"), tmp_path / "clones").instances())
    assert [(each.id, each.fault.partition(", ")[2]) for each in found] == [
        ("row-1", "row 1: it is not a JSON object"),
        ("astropy__astropy-12907", ""),
    ]


BROKEN = {"not JSON": '{"instance_id": "cut', "no object": "7", "lacks": '{"instance_id": "lacking"}'}


def test_rows_that_cannot_be_used_are_named_and_leave_the_others_alone(tmp_path: Path, provider: Provider) -> None:
    good = json.dumps(rows.CLASSIC)
    (tmp_path / "rows.jsonl").write_text("\n".join([*BROKEN.values(), "", good, good]))
    source = open_source(str(tmp_path / "rows.jsonl"), tmp_path / "clones")
    found = {each.id: each for each in source.instances()}
    assert list(found) == ["row-1", "row-2", "lacking", "astropy__astropy-12907", "row-5"]
    said = [each.fault.removeprefix(f"{tmp_path}/rows.jsonl:") for each in found.values()]
    assert said[0].startswith("1: the line is not JSON: ")
    assert said[1] == "2: the line is not a JSON object"
    assert said[2].startswith("3 (lacking): its columns")
    assert said[3:] == ["", "6 (astropy__astropy-12907): an earlier row has this instance_id"]
    checked = check(found["lacking"], source, provider)
    assert not checked.valid
    assert "rows.jsonl:3 (lacking)" in checked.empty
    assert grade(found["row-2"], b"any", source, provider).status == "error"


def test_a_batch_that_solves_keeps_nothing_of_a_set_that_only_grading_needs(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([rows.CLASSIC, rows.FIFTH | {"instance_id": "other"}]))
    source = open_source(f"{tmp_path}/rows.json", tmp_path / "clones")
    kept, suite = cli_run._read(source)
    whole = list(source.instances())
    assert suite == suite_id(whole)
    assert [each.task for each in kept] == [each.task for each in whole]
    assert [(each.hidden.row, each.hidden.patch, each.hidden.eval_script) for each in kept] == [({}, b"", "")] * 2


def test_an_instance_that_the_set_has_wrong_is_broken_and_the_batch_goes_on(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("7\n" + json.dumps(rows.CLASSIC))
    source = open_source(str(tmp_path / "rows.jsonl"), tmp_path / "clones")
    known = {each.id: each for each in source.instances()}

    def answer(name: str, run: Path) -> Result:
        source.prepare(known[name])
        return result(run)

    begun, why = halted(tmp_path / "out", list(known), answer)
    assert (begun, why, states(tmp_path / "out")) == (list(known), "", {"row-1": "broken", begun[1]: "done"})


def test_the_files_of_a_patch_are_told_without_git_as_git_tells_them(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    text = b"".join(b"line %d\n" % number for number in range(30))
    names = ("old \xe9.py", "gone.py", "kept.py", "run.sh", 'quo"ted.py', "a b/a b", "cut")
    write(tmp_path, dict.fromkeys(names, text) | {"picture.png": b"\0\1", "lies.txt": b"-- a/no.py\n++ b/no.py\n"})
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "base")
    git(tmp_path, "mv", "old \xe9.py", "new name.py")
    git(tmp_path, "rm", "-q", "gone.py")
    (tmp_path / "run.sh").chmod(0o755)
    write(tmp_path, {"picture.png": b"\0\2", "kept.py": b"one\n" + text[:-1], "lies.txt": b"", "empty.py": b""})
    write(
        tmp_path, {'quo"ted.py': text + b"--- a/no.py\n+++ b/no.py\n@@ -1 +1 @@\n", "a b/a b": b"x", "cut": b"\r\x0c\n"}
    )
    git(tmp_path, "add", "-A")
    for options in ((), ("-M",), ("-U0",), ("--binary", "-M")):
        patch = git(tmp_path, "diff", "--cached", *options)
        assert changes.touched(patch) == clones.paths_of(patch), options
        assert changes.kept(patch) == tuple(name for name in clones.paths_of(patch) if (tmp_path / name).exists())
        for end in (patch.rindex(b"\n+one"), patch.rindex(b"line 27")):
            with pytest.raises(ValueError, match="breaks off"):
                changes.changes(patch[:end])
    assert changes.touched(b"--- a/x.py\t2020-01-01\n+++ b/x.py\t2020-01-02\n@@ -1 +1 @@\n-a\n+b\n") == ("x.py",)
    assert changes.touched(b"") == ()


def test_a_part_of_a_file_that_has_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([rows.CLASSIC]))
    with pytest.raises(UsageError, match="no splits or levels, so none is called 'dev'"):
        open_source(f"{tmp_path}/rows.json:dev", tmp_path / "clones")


@pytest.mark.parametrize("name", ["nothing", "a b/c", "rows.txt"])
def test_a_name_that_nothing_is_known_by_says_what_a_source_can_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.txt").write_text("x")
    named = str(tmp_path / name) if name == "rows.txt" else name
    with pytest.raises(UsageError, match=r"owner/name:split|ends with \.jsonl, \.json, \.parquet"):
        list(open_source(named, tmp_path / "clones").instances())


def test_a_set_of_the_hub_has_one_name_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sets" / "night").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    named = [in_full(name) for name in ("owner/name", "owner/name:test", "sets/night", "sets/night:dev")]
    assert named == ["owner/name", "owner/name:test", f"{tmp_path}/sets/night", f"{tmp_path}/sets/night:dev"]


def test_revealed_tests_are_put_into_the_image_and_protected(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([rows.CLASSIC]))
    (instance,) = open_source(str(tmp_path / "rows.json"), tmp_path / "clones", reveal=True).instances()
    assert (instance.mode, instance.task.goal_tests) == ("revealed", tuple(rows.GOAL))
    assert instance.task.protected_paths == ("tests/data.json", "tests/test_calc.py")
    assert any("assert calc" in command for command in instance.task.workspace.setup)
    assert "return a + b" not in json.dumps(dump_task(instance.task))
