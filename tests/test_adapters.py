"""What every adapter makes of what a test runner leaves behind, and which one is chosen.

The reports in tests/logs were written by the real tools (see test_logs.py for their versions), the sealed ones with the
nonce `recorded`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import UsageError
from agent.measure import SuiteReport
from agent.measure.adapters import Adapter, RunOutput
from agent.measure.adapters.logs import LOGS, guessed
from agent.measure.adapters.registry import ADAPTERS, choose
from agent.measure.logs import PARSERS
from agent.measure.protection import protect
from agent.measure.reading import from_transcript
from agent.measure.suite import GENEROUS
from agent.measure.warm.plugins import run_names
from agent.task import Task
from sandboxes import Change, ExecResult, Workspace

LOGS_FOLDER = Path(__file__).parent / "logs"
NAMES = list(ADAPTERS)
BLOCKS = "test/calc.test.js::double::of"
SUITE = {
    "test/calc.test.js::adds": "failed",
    f"{BLOCKS} two": "passed",
    f"{BLOCKS} nothing": "passed",
    f"{BLOCKS} text": "skipped",
    f"{BLOCKS} lists": "skipped",
}
SUREFIRE = {
    "calc.CalcTest::adds": "failed",
    "calc.CalcTest::later": "skipped",
    "calc.CalcTest::doubles(int)[1]": "passed",
    "calc.CalcTest::doubles(int)[2]": "passed",
}
RECORDED = {
    "go": (
        "go-json.txt",
        1,
        {
            "example.com/calc::TestAdd": "failed",
            "example.com/calc::TestDouble/of_two": "passed",
            "example.com/calc::TestDouble": "passed",
            "example.com/calc::TestLater": "skipped",
            "example.com/calc/shape::TestArea": "passed",
        },
    ),
    "cargo": (
        "cargo.txt",
        101,
        {
            "calc::src/lib.rs::tests::later": "skipped",
            "calc::src/lib.rs::tests::overflows": "passed",
            "calc::src/lib.rs::tests::adds": "failed",
            "doubling::tests/doubling.rs::doubles": "passed",
            "calc::doc::src/lib.rs - double": "passed",
        },
    ),
    "unittest": (
        "unittest.sealed",
        1,
        {
            "test_calc.py::Calc::test_add": "failed",
            "test_calc.py::Calc::test_double": "passed",
            "test_calc.py::Calc::test_later": "skipped",
            "test_calc.py::Calc::test_lists": "passed",
        },
    ),
    "django": (  # Django 5.2's own `manage.py test`
        "django.sealed",
        1,
        {
            "shop/tests/test_calc.py::Calc::test_add": "failed",
            "shop/tests/test_calc.py::Calc::test_double": "passed",
            "shop/tests/test_calc.py::Calc::test_later": "skipped",
            "shop/tests/test_calc.py::Parts::test_all": "failed",
            "shop/tests/test_more.py::More::test_more": "passed",
            "shop/tests/test_calc.py::Absent::test_nothing": "error",
        },
    ),
    "sympy": (  # the `bin/test` of SymPy 1.8
        "sympy.sealed",
        1,
        {
            "sympy/core/tests/test_calc.py::test_add": "failed",
            "sympy/core/tests/test_calc.py::test_double": "passed",
            "sympy/core/tests/test_calc.py::test_expected": "passed",
            "sympy/core/tests/test_calc.py::test_later": "skipped",
            "sympy/core/tests/test_calc.py::test_slow": "skipped",
            "sympy/core/tests/test_calc.py::test_raises": "error",
        },
    ),
    "node": ("node.sealed", 1, SUITE),
    "jest": ("jest.sealed", 1, SUITE),
    "vitest": ("vitest.sealed", 1, SUITE),
    "junit": ("surefire.xml", 1, SUREFIRE),
    "maven": ("surefire.xml", 1, SUREFIRE),
    "gradle": ("surefire.xml", 1, SUREFIRE),
}


GUESSED = {
    **{
        name: ((LOGS_FOLDER / f"{name}.txt").read_text(), True)
        for name in ("unittest", "pytest", "go", "cargo", "node")
    },
    "tap": ("TAP version 13\nok 1 - adds\nok 2 - halves # SKIP later\n1..2\n", False),
    "ctest": (
        """1/2 Test #1: adds ....................   Passed    0.01 sec
2/2 Test #2: halves ..................***Failed    0.01 sec

50% tests passed, 1 tests failed out of 2
""",
        True,
    ),
    "googletest": ("[       OK ] Calc.Adds (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n", False),
    "automake": ("PASS: adds.sh\nFAIL: halves.sh\n# TOTAL: 2\n# PASS:  1\n", True),
    "phpunit": ("Calc (Tests\\Calc)\n ✔ Adds\n\nOK (1 test, 1 assertion)\n", False),
    "minitest": ("CalcTest#test_adds. = 0.00 s = .\n1 runs, 1 assertions, 0 failures\n", False),
}
"""What runners print, and whether a test failed."""
ORDINARY = (
    "checking for gcc ... ok\nchecking for ld ... ok\n",
    "Ran 3 tests in 0.1s\n\nOK\n",
    "FAIL: test_add (calc.Calc)\n\nRan 3 tests in 0.1s\n\nFAILED (failures=1)\n",
    "ok 1 of 3 files\nPASS\nFAIL: no such file\n",
    "PASS: the server is up\n",
    "--- FAIL: TestAdd (0.00s)\nFAIL\nFAIL\tcalc\t0.01s\n",
    "✓ built in 3 s\n✔ done\n",
    "a. b = 3.\n",
    "",
)


def report(adapter: Adapter, data: bytes, exit_code: int) -> SuiteReport:
    """The report of a run that left this behind."""
    gathered = {"target/surefire-reports/TEST-calc.xml": data} if adapter.name in ("maven", "gradle") else {}
    left = RunOutput("recorded", b"" if gathered else data, gathered)
    return from_transcript(adapter.read(left), ExecResult(exit_code, b"", b"", 0, 0, 1.0), (), adapter.name)


def recorded(name: str) -> tuple[bytes, int]:
    file, exit_code, _ = RECORDED[name]
    return (LOGS_FOLDER / file).read_bytes(), exit_code


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_is_a_valid_report_of_exactly_its_tests(name):
    said = report(ADAPTERS[name], *recorded(name))
    assert {test: outcome.value for test, outcome in said.outcomes.items()} == RECORDED[name][2]
    assert (said.valid, said.problem, said.adapter) == (True, "", name)
    assert said.messages[said.failures[0]]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_left_nothing_is_never_a_pass(name):
    said = report(ADAPTERS[name], b"", 0)
    assert not said.valid
    assert name in said.problem


@pytest.mark.parametrize("name", NAMES)
def test_an_exit_code_that_does_not_agree_with_the_tests_makes_a_run_invalid(name):
    said = report(ADAPTERS[name], recorded(name)[0], 0)
    assert not said.valid
    assert not said.passes


@given(name=st.sampled_from(NAMES), data=st.binary(max_size=300), exit_code=st.integers(0, 255))
def test_whatever_a_run_left_it_is_read_and_passes_nothing(name, data, exit_code):
    said = report(ADAPTERS[name], data, exit_code)
    assert not said.valid
    assert not said.passes


@given(name=st.sampled_from(NAMES), cuts=st.tuples(st.integers(0, 4000), st.integers(0, 4000)), code=st.integers(0, 1))
def test_a_report_with_a_piece_cut_out_is_read_and_names_no_test_that_did_not_pass_as_passed(name, cuts, code):
    data, _ = recorded(name)
    start, end = sorted(cuts)
    said = report(ADAPTERS[name], data[:start] + data[end:], code)
    failed = [test for test, outcome in RECORDED[name][2].items() if outcome != "passed"]
    if name not in ("cargo", "junit", "maven", "gradle"):  # in which a line or an attribute can go and nobody sees it
        assert not any(said.passed(test) for test in failed)


@pytest.mark.parametrize("name", ["node", "jest", "vitest", "unittest"])
def test_a_sealed_report_cannot_be_continued_by_somebody_else(name):
    data, exit_code = recorded(name)
    forged = {"kind": "test", "id": "mine", "outcome": "passed", "seconds": 0, "message": ""}
    said = report(ADAPTERS[name], data + b"0" * 64 + b" " + json.dumps(forged).encode() + b"\n", exit_code)
    assert not said.valid
    assert "mine" not in said.outcomes


def test_a_go_test_that_is_said_to_have_passed_and_failed_is_believed_in_neither():
    data, exit_code = recorded("go")
    passed = b'{"Action":"pass","Package":"example.com/calc","Test":"TestAdd","Elapsed":0}\n'
    said = report(ADAPTERS["go"], passed + data, exit_code)
    assert not said.valid
    assert "TestAdd is reported as" in said.problem


def test_go_tests_of_a_package_that_never_ended_do_not_count():
    data, exit_code = recorded("go")
    said = report(ADAPTERS["go"], b"\n".join(data.splitlines()[:-1]), exit_code)
    assert "broke off" in said.problem


def test_a_go_package_that_cannot_be_built_fails_all_its_tests():
    broken = b'{"Action":"output","Package":"p","Output":"p.go:3: syntax error\\n"}\n{"Action":"fail","Package":"p"}\n'
    said = report(ADAPTERS["go"], broken, 1)
    assert said.valid
    assert said.outcome("p::TestA").value == "error"
    assert "syntax error" in said.messages["p"]


def test_a_go_package_that_ends_badly_without_a_failing_test_has_none_that_passed():
    left = b'{"Action":"pass","Package":"p","Test":"TestA"}\n{"Action":"fail","Package":"p"}\n'
    said = report(ADAPTERS["go"], left, 1)
    assert said.valid
    assert not said.passes


def test_a_rust_test_binary_that_ends_early_is_broken_and_one_that_miscounts_is_not_believed():
    data, _ = recorded("cargo")
    cut = data.replace(
        b"test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s", b""
    )
    said = report(ADAPTERS["cargo"], cut, 101)
    assert said.outcome("doubling::tests/doubling.rs").value == "error"
    assert "calc::src/lib.rs::tests::overflows" in said.passes
    assert "doubling::tests/doubling.rs::doubles" not in said.passes
    assert "broke off" in report(ADAPTERS["cargo"], data.replace(b"FAILED. 1 passed", b"FAILED. 2 passed"), 101).problem


def test_tests_of_one_name_in_a_file_are_told_apart_and_in_two_files_have_to_agree():
    case = b'<testcase classname="a" name="b"/>'
    twice = b"<testsuite>" + case + case.replace(b"/>", b"><failure/></testcase>") + b"</testsuite>"
    assert list(report(ADAPTERS["junit"], twice, 1).outcomes) == ["a::b", "a::b (2)"]
    passed = b"<testsuite>" + case + b"</testsuite>"
    failed = passed.replace(b"/></", b"><error/></testcase></")
    transcript = ADAPTERS["maven"].read(RunOutput("", gathered={"1.xml": failed, "2.xml": passed}))
    assert transcript.doubts


def test_an_xml_report_that_declares_entities_or_an_unknown_encoding_is_not_read():
    bomb = b'<!DOCTYPE t [<!ENTITY a "aaa">]><testsuite><testcase classname="a" name="&a;"/></testsuite>'
    assert not report(ADAPTERS["junit"], bomb, 0).valid
    for encoding in ("none-such", "utf-7"):
        unread = f'<?xml version="1.0" encoding="{encoding}"?><testsuites/>'.encode()
        assert not report(ADAPTERS["junit"], unread, 0).valid


@pytest.mark.parametrize("name", NAMES)
def test_an_invocation_runs_the_command_and_names_a_report_that_nobody_can_guess(name):
    first, second = (
        ADAPTERS[name].invocation(run_names(()), f"cd x && {ADAPTERS[name].command}", (), GENEROUS) for _ in range(2)
    )
    assert "cd x && " in first.script
    assert first.captured or first.gather or first.script != second.script


def test_options_that_a_command_gives_to_node_are_kept():
    script = ADAPTERS["jest"].invocation(run_names(()), "NODE_OPTIONS=--no-warnings npx jest", (), GENEROUS).script
    assert '.cjs "--no-warnings npx jest' in script


def test_flags_that_a_command_gives_to_go_are_kept_and_an_alias_of_cargo_is_left_alone():
    script = ADAPTERS["go"].invocation(run_names(()), "GOFLAGS=-mod=vendor go test", ["p::TestA/b"], GENEROUS).script
    assert "\nGOFLAGS='-json -run=^(TestA)$ '-mod=vendor go test" in script
    assert ADAPTERS["cargo"].invocation(run_names(()), "cargo test-all", (), GENEROUS).script.endswith("cargo test-all")


CHOICES = {
    "go.mod": ({"go.mod": ""}, None, ("go", "go test ./...")),
    "Cargo.toml": ({"Cargo.toml": ""}, None, ("cargo", "cargo test")),
    "pom.xml": ({"pom.xml": ""}, None, ("maven", "mvn -B test")),
    "a build of Gradle's": ({"build.gradle.kts": ""}, None, ("gradle", "./gradlew test")),
    "a test script": ({"package.json": '{"scripts": {"test": "node --test"}}'}, None, ("node", "node --test")),
    "a dependency": ({"package.json": '{"devDependencies": {"vitest": "4"}}'}, None, ("vitest", "npx vitest run")),
    "npm test": ({"package.json": '{"scripts": {"test": "jest"}}', "setup.py": ""}, "npm test", ("jest", "npm test")),
    "Python beside others": ({"pyproject.toml": "", "Cargo.toml": ""}, None, ("", "python3 -m pytest -q")),
    "Python without a project": ({"test_x.py": ""}, None, ("", "python3 -m pytest -q")),
    "a command of another framework": ({"setup.py": ""}, "python -m unittest", ("unittest", "python -m unittest")),
    "pytest after a build": ({"Cargo.toml": ""}, "cargo build && pytest -q", ("", "cargo build && pytest -q")),
    "tests after a build": ({"x": ""}, "make && cargo +nightly test -q", ("cargo", "make && cargo +nightly test -q")),
    "make in a Go repository": ({"go.mod": ""}, "make test", ("go", "make test")),
    "Python runs them": ({"go.mod": ""}, "python3 run_tests.py", ("", "python3 run_tests.py")),
    "a command that nobody knows": ({"x": ""}, "./check", ("", "./check")),
}


@pytest.mark.parametrize("case", CHOICES)
def test_the_framework_is_what_the_command_names_or_the_files_say(case, tmp_path):
    files, command, expected = CHOICES[case]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert choose(tmp_path, command, None) == expected


def test_where_no_framework_is_recognised_the_person_is_told_what_to_name(tmp_path):
    (tmp_path / "package.json").write_text("[1")
    with pytest.raises(UsageError, match=r"no test framework is recognised in .*--test-framework \(pytest, unittest"):
        choose(tmp_path, None, None)
    with pytest.raises(UsageError, match="did you mean jest"):
        choose(tmp_path, None, "jset")
    with pytest.raises(UsageError, match="has no default command: give one with --test"):
        choose(tmp_path, None, "junit")
    assert choose(None, "go test", None) == ("go", "go test")
    assert choose(tmp_path, None, "cargo") == ("cargo", "cargo test")


def test_titles_are_told_where_one_test_alone_has_them():
    data, exit_code = recorded("django")
    assert report(ADAPTERS["django"], data, exit_code).titles == {
        "Items are counted.": "shop/tests/test_calc.py::Calc::test_add"
    }


def test_every_log_parser_is_an_adapter_that_has_to_be_given_a_command(tmp_path):
    assert set(LOGS) == {f"log:{name}" for name in PARSERS}
    assert choose(tmp_path, "ctest", "log:ctest") == ("log:ctest", "ctest")
    with pytest.raises(UsageError, match="has no default command"):
        choose(tmp_path, None, "log:ctest")
    with pytest.raises(UsageError, match=r"did you mean log:ctest\? choose one of pytest, unittest, go"):
        choose(tmp_path, "x", "log:ctst")


@pytest.mark.parametrize("name", GUESSED)
def test_a_log_that_a_runner_wrote_is_recognised_where_the_exit_code_agrees(name):
    text, failed = GUESSED[name]
    assert guessed(text, int(failed)) == name
    assert guessed(text, int(not failed)) is None
    adapter = LOGS[f"log:{name}"]
    said = report(adapter, text.encode(), int(failed))
    assert (said.valid, bool(said.failures)) == (True, failed)


def test_what_programs_say_is_no_log_of_tests():
    assert [text for text in ORDINARY if guessed(text, 0) or guessed(text, 1)] == []


COVERED = {
    "go": (["calc_test.go", "a/testdata/x", "go.mod", "go.work", "vendor/x/y.go"], ["calc.go", "cmd/main.go"]),
    "cargo": (["tests/it.rs", "Cargo.toml", ".cargo/config.toml", "build.rs", "target/debug/x"], ["src/lib.rs"]),
    "maven": (["src/test/java/T.java", "m/pom.xml", ".mvn/jvm.config", "m/target/x"], ["src/main/java/T.java"]),
    "gradle": (["src/test/java/T.java", "build.gradle", "gradlew"], ["src/main/java/T.java"]),
    "node": (["test/a.js", "src/a.test.mjs", "package.json", "node_modules/x/y.js", ".npmrc"], ["src/a.js", "a.mjs"]),
    "jest": (["src/__tests__/a.js", "jest.config.ts", "package.json", "a.snap"], ["src/a.js"]),
    "vitest": (["a.spec.ts", "vitest.config.ts", "vite.config.ts"], ["src/a.ts"]),
    "junit": (["spec/a_spec.rb", "src/ATests.cs", "test/a.php"], ["lib/a.rb", "src/A.cs"]),
}


@pytest.mark.parametrize("framework", COVERED)
def test_what_decides_about_the_tests_is_put_back_and_sources_are_not(framework):
    protection = protect(Task("t", "", Workspace(), "run", framework=framework), SuiteReport())
    put_back, left = COVERED[framework]
    assert [path for path in put_back if not protection.covers(Change(path, "modified"))] == []
    assert [path for path in left if protection.covers(Change(path, "modified"))] == []


TRICKS = {
    "go": (['f, _ := os.Open("/proc/self/fd/1")', "syscall.Exit(0)"], ['os.ReadFile("/proc/meminfo")', "os.Exit(1)"]),
    "cargo": (
        [
            "process::exit(0);",
            'env::var("CARGO_TARGET_TMPDIR")',
            "macro_rules! assert_eq {",
            'format!("/proc/{pid}/fd")',
        ],
        ["process::exit(code);", 'env!("CARGO_PKG_VERSION")', "process::exit(2)", "macro_rules! assertion_of {"],
    ),
    "maven": (["System.exit(0);", "Runtime.getRuntime().halt(0);"], ["System.exit(status);", "cpu.halt();"]),
    "jest": (
        ["assert.strictEqual = () => {};", "require('assert').ok = f", "globalThis.expect = f", "require('inspector')"],
        [
            "process.exit(1)",
            "process.kill(child)",
            "const f = assert.ok",
            "const { Worker } = require('worker_threads')",
        ],
    ),
    "junit": (["ENV['RAMIFY_JUNIT']"], ["exit 0"]),
}


@pytest.mark.parametrize("framework", TRICKS)
def test_what_talks_to_the_runner_is_a_trick_and_what_programs_do_is_none(framework):
    tricks, honest = TRICKS[framework]
    assert [line for line in tricks if not ADAPTERS[framework].tricks.search(line)] == []
    assert [line for line in honest if ADAPTERS[framework].tricks.search(line)] == []


def test_a_doctest_goes_by_the_same_name_when_lines_above_it_move():
    ended = "test result: {}; 0 ignored; 0 measured; 0 filtered out; finished in 0.3s\n\n"
    begins = "     Running unittests src/lib.rs (target/debug/deps/calc-c6626fb655a8d231)\n\nrunning 0 tests\n\n"
    begins += ended.format("ok. 0 passed; 0 failed") + "   Doc-tests calc\n\nrunning 3 tests\n"
    for moved in (0, 90):
        ran = (
            f"test src/lib.rs - double (line {12 + moved}) ... FAILED\n"
            f"test src/lib.rs - double (line {9 + moved}) ... ok\n"
            f"test src/lib.rs - double (line {9 + moved}) - compile ... ok\n"
        )
        found = report(ADAPTERS["cargo"], (begins + ran + ended.format("FAILED. 2 passed; 1 failed")).encode(), 101)
        double = "calc::doc::src/lib.rs - double"
        ends = {test: outcome.value for test, outcome in found.outcomes.items()}
        assert ends == {double: "passed", f"{double} (2)": "failed", f"{double} - compile": "passed"}
        assert found.valid
