"""What the named parsers read in the logs of real test runners, recorded in tests/logs.

pytest 9.2.0, unittest of Python 3.11.7, go 1.19.8, node 20.20.2, jest 30.5.2, vitest 4.1.12, cargo 1.95.0, Maven 3.8.7
with surefire 3.5.2.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.measure import Outcome
from agent.measure.logs import ALIASES, PARSERS, parse

LOGS = Path(__file__).parent / "logs"
LINES = [line for file in sorted(LOGS.glob("*.txt")) for line in file.read_text().splitlines()]

RECORDED = {
    "pytest": {
        "test_calc.py::Calc::test_add": "failed",
        "test_calc.py::Calc::test_double": "passed",
        "test_calc.py::Calc::test_later": "skipped",
        "test_calc.py::Calc::test_lists": "passed",
        "test_calc.py::test_words[a]": "passed",
        "test_calc.py::test_words[b c]": "failed",
    },
    "unittest": {
        "test_add (test_calc.Calc.test_add)": "failed",
        "Twice two is four.": "passed",
        "test_later (test_calc.Calc.test_later)": "skipped",
        "test_lists (test_calc.Calc.test_lists)": "passed",
    },
    "go": {
        "TestAdd": "failed",
        "TestDouble": "passed",
        "TestDouble/of_two": "passed",
        "TestLater": "skipped",
        "TestArea": "passed",
    },
    "go-json": {
        "example.com/calc::TestAdd": "failed",
        "example.com/calc::TestDouble/of_two": "passed",
        "example.com/calc::TestDouble": "passed",
        "example.com/calc::TestLater": "skipped",
        "example.com/calc/shape::TestArea": "passed",
    },
    "node": {
        "adds": "failed",
        "of two": "passed",
        "of nothing": "passed",
        "of text": "skipped",
        "of lists": "skipped",
        "double": "passed",
    },
    "tap": {
        "adds": "failed",
        "of two": "passed",
        "of nothing": "passed",
        "of text": "skipped",
        "of lists": "passed",
        "double": "passed",
    },
    "jest": {"adds": "failed", "of two": "passed", "of nothing": "passed", "of text": "skipped", "of lists": "skipped"},
    "vitest": {
        "test/calc.test.js > adds": "failed",
        "test/calc.test.js > double > of two": "passed",
        "test/calc.test.js > double > of nothing": "passed",
        "test/calc.test.js > double > of text": "skipped",
        "test/calc.test.js > double > of lists": "skipped",
    },
    "cargo": {
        "tests::later": "skipped",
        "tests::overflows": "passed",
        "tests::adds": "failed",
        "doubles": "passed",
        "src/lib.rs - double (line 3)": "passed",
    },
    "maven": {"calc.CalcTest": "failed", "calc.CalcTest.adds": "failed"},
}
WRITTEN = {
    "tap-whole": ("ok 1 - adds\nnot ok 2 halves\n", {"- adds": "passed", "halves": "failed"}),
    "maven-single": (
        "+ mvn -Dtest=CalcTest#adds\n[INFO] BUILD FAILURE\n-Dtest=CalcTest#later\n[INFO] BUILD SUCCESS\n",
        {"CalcTest#adds": "failed", "CalcTest#later": "passed"},
    ),
    "gradle": (
        "calc.CalcTest > adds() FAILED\ncalc.CalcTest > later\nwarning: slow\nPASSED\nPASSED\n",
        {"calc.CalcTest > adds()": "failed", "calc.CalcTest > later": "passed"},
    ),
    "sympy": ("test_add ok\ntest_half F\ntest_later s\n", {"test_add": "passed", "test_half": "failed"}),
    "pytest-options": (
        "PASSED t.py::a[/x/y.txt]\nFAILED t.py::b[//x] - E\n",
        {"t.py::a[/y.txt]": "passed", "t.py::b[//x]": "failed"},
    ),
    "pytest-buttons": ("PASSED t.py::a[MouseButton.LEFT]\n", {"t.py::a[1]": "passed"}),
    "jest-names": (
        "[PASSED] calc > adds\n[FAILED] calc > halves\n",
        {"calc > adds": "passed", "calc > halves": "failed"},
    ),
    "jest-files": ("PASS src/a.js (5.2 s)\nFAIL src/b.js\n", {"src/a.js": "passed", "src/b.js": "failed"}),
    "jest-marks": (
        "  ✓ adds (3 ms)\n  ✕ halves\n  ○ skipped later\n",
        {"adds": "passed", "halves": "failed", "skipped later": "skipped"},
    ),
    "vitest-marks": ("✓ a.ts > adds 3ms\n\u00d7 a.ts > halves\n", {"a.ts > adds": "passed", "a.ts > halves": "failed"}),
    "karma": (
        (
            "✖ before\nStarting browser Chrome\n  calc\n    ✔ adds\n    ✖ halves\n      deeper\n        ✔ adds\n"
            "SUMMARY:\n    ✔ after\n"
        ),
        {"calc > adds": "passed", "calc > halves": "failed", "calc > deeper > adds": "passed"},
    ),
    "karma-next": (
        (
            "+ xvfb-run x\nStarting browser Chrome\n  calc\n    ✓ adds\n    AssertionError: #<A>\n  inner\n\n"
            "    ✗ halves\nLOG: x\nTOTAL: 1\n    ✓ after\n"
        ),
        {"calc - adds": "passed", "calc - halves": "failed"},
    ),
    "bpmn-js": (
        (
            "\x1b[1A\x1b[2KPhantomJS 2.1.1 (Linux 0.0.0) draws FAILED\n"
            "Chrome Headless 120.0.0.0 (Linux x86_64): Executed 1 of 2 (1 FAILED)\n"
            "Chrome Headless 120.0.0.0 (Linux x86_64) moves FAILED\n"
        ),
        {"draws ": "failed", "moves ": "failed"},
    ),
    "openlayers": (
        (
            "Chrome Headless 99.0 (Linux x86_64) ol.Map  draws FAILED\ncase a/b.html: mismatch 0.3\ncase a/c': ok\n"
            "  1) rendering\n     circles:\n     Error: no\n"
        ),
        {"ol.Map draws": "failed", "a/b.html": "failed", "rendering circles:": "failed"},
    ),
    "eslint": (
        "  1 failing\n\n  1) rules\n       no-undef:\n\n      AssertionError [ERR]: no\n  2) a cfg: TypeError: x\n",
        {"rules no-undef:": "failed"},
    ),
    "p5js": (
        (
            "{\n  1) in: json\n}\n<p>\n  2) in: tags\n<p></p></p>\n  3) color\n       blends:\n     Error: 4) no\n"
            "  5) flat\n lines:\n"
        ),
        {"color:blends": "failed"},
    ),
    "jest-suites": (
        (
            "  ✓ before\n+ ./node_modules/.bin/jest --verbose a\n  calc\n    of two\n      ✓ adds (7ms)\n    ✕ halves\n"
            "Test Suites: 1\n  ✓ after\n"
        ),
        {"calc - of two - adds": "passed", "calc - of two - halves": "failed"},
    ),
    "mocha-line": (
        "  calc\n    of two\n      ✔ adds (7ms)\n      1) halves\n\n  1 passing (1s)\n  2) after\n",
        {"of two.adds": "passed", "of two.halves": "failed"},
    ),
    "mocha-suites": (
        "✔ before\nrunning 2 test files\n x\n  calc\n    ✔ adds (7ms)\n    1) halves\n\n  1 passing (1s)\n  2) after\n",
        {"calc - adds": "passed", "calc - halves": "failed"},
    ),
    "cypress": (
        "Running:  a.js  (1 of 2)\n\n\n  calc\n    ✓ adds (7ms)\n    1) halves\n",
        {"calc: adds": "passed", "calc: halves": "failed"},
    ),
    "quarto": (
        (
            "[smoke] > adds ...\n- output -\n[smoke] > adds ... \x1b[0m\x1b[32mok\x1b[0m (1s)\n"
            "[unit] > /tmp/k3j.qmd halves ... \x1b[31mFAILED\x1b[0m\n[unit] > hangs ...\n ERRORS \n[unit] > after ...\n"
        ),
        {"[smoke] > adds": "passed", "[unit] > /tmp/0 halves": "failed", "[unit] > hangs": "failed"},
    ),
    "doctest": (
        (
            'noise <a>\n<doctest binary="t">\n<TestCase name="calc"><SubCase name="adds"><Expression success="true"/>'
            '</SubCase><SubCase name="halves"><Expression success="true"/><Expression success="false"/></SubCase>'
            "</TestCase>\n</doctest>\nnoise\n"
        ),
        {"calc > adds": "passed", "calc > halves": "failed"},
    ),
    "mocha-json-raw": ('{"stats": {}, "passes": [{"fullTitle": "a \\"b\\""}]}', {'a \\"b\\"': "passed"}),
    "karma-failures": ("Chrome 99.0 (Linux x86_64) Chart draws FAILED\n", {"Chart draws ": "failed"}),
    "numbered": ("1) it draws\n  2) no\n", {"it draws": "failed"}),
    "automake": (
        "PASS: tests/add\nFAIL: tests/half\nSKIP: tests/x\n",
        {"tests/add": "passed", "tests/half": "failed", "tests/x": "skipped"},
    ),
    "ctest": (
        "1/2 Test  #1: unit add ....   Passed    0.01 sec\n2/2 Test #22: half .............***Failed    0.02 sec\n",
        {"unit add": "passed", "half": "failed"},
    ),
    "multi-ctest": (
        "-- Performing Test HAVE_X - Success\n1/1 Test #1: Unit: Add ....   Passed    0.01 sec\n",
        {"unit: add": "passed", "have_x": "passed"},
    ),
    "googletest": (
        (
            "[ RUN      ] Calc.Adds\n[       OK ] Calc.Adds (0 ms)\n[  FAILED  ] Calc.Halves (1 ms)\n"
            "[  FAILED  ] 1 test, listed below:\n---- Passed: pony/adds\n**** FAILED: pony/halves\n"
        ),
        {
            "Calc.Adds": "passed",
            "Calc.Halves": "failed",
            "1 test, listed below:": "failed",
            "pony/adds": "passed",
            "pony/halves": "failed",
        },
    ),
    "micropython": (
        "pass  basics/add.py\nFAIL  basics/half.py\n",
        {"basics/add.py": "passed", "basics/half.py": "failed"},
    ),
    "redis": (
        "[ok]: SET and GET in a row (10 ms)\n[err]: EXPIRE in tests/unit/expire.tcl\n[ignore]: slow\n",
        {"SET and GET in a row": "passed", "EXPIRE": "failed", "slow": "skipped"},
    ),
    "phpunit": ("Calc (Tests\\Calc)\n ✔ Adds\n ✘ Halves\n", {"Calc > Adds": "passed", "Calc > Halves": "failed"}),
    "minitest": (
        "test: calc should add. (TestCalc) = 0.01 s = .\nhalves. (TestCalc) = 1.00 s = F\n",
        {"test: calc should add": "passed", "halves": "failed"},
    ),
    "cucumber": ("Adding numbers .....\nHalving ..F..\n", {"Adding numbers": "passed", "Halving": "failed"}),
    "test-unit": ("test: adds:\t.: (0.001)\n  halves:  F\n", {"adds": "passed", "halves": "failed"}),
    "rspec": ("Calc adds - passed\nCalc halves - failed\n", {"Calc adds": "passed", "Calc halves": "failed"}),
    "told": (
        'warning\n{"tests": [{"name": "adds", "status": "PASSED"}, {"name": "halves", "status": "ERROR"}]}\n',
        {"adds": "passed", "halves": "error"},
    ),
    "mocha-json": (
        (
            'noise {"a"\n{\n "stats": {},\n "passes": [{"fullTitle": "calc adds"}, {"fullTitle": "twice"}],\n'
            ' "failures": [{"fullTitle": "calc halves"}, {"fullTitle": "twice"}], "pending": []}\nDone.\n'
        ),
        {"calc adds": "passed", "calc halves": "failed", "twice": "failed"},
    ),
    "mocha-json-files": ('{"stats": {}, "passes": [{"fullTitle": "adds", "file": "/a.js"}]}', {"/a.js:adds": "passed"}),
    "multi-go": (
        "--- PASS: TestA (0.00s)\n    --- PASS: TestA/b (0.00s)\nFAIL\texample.com/x [build failed]\nFAIL\n",
        {"TestA": "passed", "TestA/b": "passed", "example.com/x": "failed"},
    ),
    "multi-go-parents": (
        "--- PASS: Test (0.00s)\n  --- PASS: Test/A/b (0.00s)\n  --- FAIL: TestC/d (0.00s)\nFAIL\tx.com/x\t0.1s\n",
        {"Test": "passed", "Test/A": "passed", "TestC": "failed", "x.com/x": "failed"},
    ),
    "multi-gradle": (
        "> Task :java UP-TO-DATE\n> Task :test FAILED\n> Task :jar NO-SOURCE\nC > adds PASSED\nC > halves() FAILED\n",
        {"java": "passed", "test": "failed", "jar": "skipped", "C > adds": "passed", "C > halves()": "failed"},
    ),
    "multi-jest": (
        "PASS test/a.test.js (5.2 s)\n  calc\n    ✓ adds (two) (3 ms)\n    ✕ halves\nFAIL test/b.test.js\n",
        {
            "test/a.test.js": "passed",
            "test/a.test.js:adds (two)": "passed",
            "test/a.test.js:halves": "failed",
            "test/b.test.js": "failed",
        },
    ),
    "multi-jest-bare": ("PASS a.js\n ✓ adds (two) (3 ms)\n", {"a.js": "passed", "a.js:adds": "passed"}),
    "multi-jest-or-vitest": (
        "✓ src/a.test.ts (12 tests) 30ms\nPASS src/b.js\nFAIL src/c.js (2 s)\n",
        {"src/a.test.ts": "passed", "src/b.js": "passed", "src/c.js": "failed"},
    ),
    "multi-maven": (
        (
            "Running a.CalcTest\nlog\nTests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec\n"
            "Running a.HalfTest\nTests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec <<< FAILURE!\n"
            "Running a.LateTest\nTests run: 1, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0 sec\n"
        ),
        {"a.CalcTest": "passed", "a.HalfTest": "failed", "a.LateTest": "skipped"},
    ),
    "multi-mocha": ("  ✔ adds (12ms)\n  1) halves\n", {"adds": "passed", "halves": "failed"}),
    "multi-vitest": (
        "✓ a.test.ts > adds 3ms\n\u00d7 a.test.ts > halves\n",
        {"a.test.ts > adds": "passed", "a.test.ts > halves": "failed"},
    ),
    "ant": (
        "    [junit] [PASS] Calc: adds\n [junit] [ERR] Calc: halves\n",
        {"Calc: adds": "passed", "Calc: halves": "error"},
    ),
}
"""Of what no runner is at hand, by the code of the harnesses that read it."""


def told(name: str, text: str) -> dict[str, str]:
    return {test: outcome.value for test, outcome in parse(name, text).items()}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_log_names_every_test_and_how_it_ended(name):
    assert told(name, (LOGS / f"{name}.txt").read_text()) == RECORDED[name]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_log_of_a_known_form_names_its_tests(name):
    text, expected = WRITTEN[name]
    assert told(name, text) == expected


def test_every_parser_is_tried_and_every_alias_names_one():
    assert set(PARSERS) == {*RECORDED, *WRITTEN}
    assert set(ALIASES.values()) <= set(PARSERS)
    assert parse("parse_log_gotest", "--- PASS: TestA (0.00s)\n") == {"TestA": Outcome.PASSED}


@given(
    name=st.sampled_from(list(PARSERS)),
    text=st.lists(st.sampled_from(LINES) | st.text(max_size=40), max_size=30).map("\n".join),
)
def test_whatever_a_text_says_a_parser_reads_it(name, text):
    assert all(test and isinstance(outcome, Outcome) for test, outcome in parse(name, text).items())


LISTING = {"eslint", "mocha-line", "mocha-suites", "multi-mocha", "numbered", "openlayers", "p5js"}
"""Those for which a number and a bracket are enough of a line."""


@given(
    name=st.sampled_from(sorted({*PARSERS} - LISTING)),
    text=st.text(st.sampled_from("abc :.[](){}<>'-#12\n"), max_size=200),
)
def test_a_text_that_holds_no_line_of_a_runner_names_no_test(name, text):
    assert parse(name, text) == {}


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_line_ends_where_a_terminal_ends_it_and_nowhere_else(mark):
    for name, first, second in (
        ("pytest", "PASSED t.py::a[x", "FAILED t.py::b]"),
        ("go", "--- PASS: TestA/x", "--- FAIL: TestB (0.00s)"),
        ("tap", "ok 1 - a", "not ok 2 - b"),
        ("jest", "  ✓ a", "  ✕ b"),
    ):
        assert list(told(name, f"{first}{mark}{second}\n").values()) == ["passed"], name


def test_a_failure_stands_whatever_is_printed_after_it():
    assert told("go", "--- FAIL: TestAdd (0.00s)\n--- PASS: TestAdd (0.00s)\n") == {"TestAdd": "failed"}
    assert told("go", "--- SKIP: TestAdd (0.00s)\n--- PASS: TestAdd (0.00s)\n") == {"TestAdd": "passed"}


def test_what_a_test_prints_before_it_ends_does_not_hide_how_it_ended():
    noisy = "running 2 tests\ntest noisy ... hello\nworld\nok\ntest broken ... \nFAILED\n"
    text = noisy + "test cut ... \ntest result: ok.\nok\n"
    assert told("cargo", text) == {"noisy": "passed", "broken": "failed"}


HOSTILE = {
    "eslint": "  1) a\n" * 50_000,
    "p5js": "".join(f"<t{n}><t{n}></t{n}>" for n in range(200)) + "\n" + "\n" * 100_000 + "  1)" * 400,
    "karma-next": "+ xvfb-run x\n" + "AssertionError: #\n" * 50_000,
    "openlayers": "  1) a\n" * 50_000,
    "doctest": "<doctest" * 50_000,
    "mocha-line": "\n" + " " * 1999 + "\n" * 100_000,
}
"""Texts over which a parser that begins again at every mark would go on for hours."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_parser_reads_a_hostile_log_once(name):
    assert set(parse(name, HOSTILE[name] * 4).values()) <= {Outcome.FAILED}


def test_what_is_in_what_failed_is_told_without_looking_at_anything_twice():
    deep = '<SubCase name="s">' * 20_000 + '<Expression success="false"/>' + "</SubCase>" * 20_000
    flat = '<SubCase name="t"><Expression success="true"/></SubCase>'
    found = told("doctest", f'<doctest><SubCase name="u"/><TestCase name="c">{deep}{flat}</TestCase></doctest>')
    assert found == {"c > s": "failed", "c > t": "passed"}


def test_a_document_that_declares_entities_names_no_test():
    bomb = '<doctest><!DOCTYPE d [<!ENTITY a "b">]><TestCase name="&a;"><SubCase name="c"/></TestCase></doctest>'
    assert parse("doctest", f"<?xml?>{bomb}") == parse("doctest", "<doctest><TestCase></doctest>") == {}


def test_a_package_that_cannot_be_built_is_an_error_and_one_whose_tests_failed_is_not():
    built = '{"Action":"fail","Package":"p","Test":"TestA"}\n{"Action":"fail","Package":"p"}\n'
    broken = '{"Action":"output","Package":"q","Output":"q.go:3: syntax error"}\n{"Action":"fail","Package":"q"}\n'
    assert told("go-json", built + broken) == {"p::TestA": "failed", "q": "error"}
