"""Logs of the forms that SWE-bench's parsers know, put together by chance, every test named once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

_NOISE = ("", "   ", "done", "  indented words", "warn: slow (3ms)", "    at Context.it (a.js:1:2)", "1.5 seconds")
_MOCHA = ("  suite {n}", "    deeper {n}", "      ✔ test {n}", "      ✔ test {n} (12ms)", "      {n}) test {n}")
_ERRORS = ("  {n}) suite {n}", "       name {n}:", "     AssertionError: no {n}", "     TypeError: {n}", "Error: {n}")
_KARMA_NEXT = ("  suite {n}", "    deeper {n}", "      ✓ test {n}", "      ✗ test {n}", "LOG: {n}", "TOTAL: {n}")
_KARMA = ("  suite {n}", "    deeper {n}", "    \u2714 test {n}", "      \u2716 test {n}", "outside {n}")

FORMS: dict[str, tuple[Sequence[str], str, str]] = {
    "parse_log_calypso": (
        (
            "  suite {n}", "    deeper {n}", "      ✓ test {n}", "      ✓ test {n} (7ms)", "      ✕ test {n}",
            "+ ./node_modules/.bin/jest --verbose {n}", "Test Suites: {n}", "  ● failed {n}",
        ),
        "+ ./node_modules/.bin/jest --verbose a\n", "",
    ),
    "parse_log_bpmn_js": (
        (
            "\x1b[1A\x1b[2KPhantomJS 2.1.1 (Linux 0.0.0) test {n} FAILED",
            "Chrome Headless 120.0.0.0 (Linux x86_64) test {n} FAILED",
            "\x1b[1A\x1b[2KHeadlessChrome 77.0.3865 (Linux 0.0.0) test {n} FAILED",
            "Chrome Headless 120.0.0.0 (Linux x86_64): Executed {n} of 9 (1 FAILED)", "FAILED {n}",
        ),
        "", "",
    ),
    "parse_log_eslint": (_ERRORS, "", ""),
    "parse_log_highlightjs": (_MOCHA, "", "\n  3 passing (1s)\n  1 failing\n\n  1) late"),
    "parse_log_lighthouse": (_MOCHA, "running 3 test files\n", "\n  3 passing (1s)\n  4) late"),
    "parse_log_next": (_KARMA_NEXT, "+ xvfb-run x\nStarting browser Chrome\n", "\nTOTAL: 3 SUCCESS\n"),
    "parse_log_openlayers": (
        (
            "Chrome Headless 99.0 (Linux x86_64) test  {n} FAILED", "Chrome 99.0 (Linux 0.0.0) test {n} FAILED",
            "case a/{n}.html: mismatch", "case a/{n}': ok", *_ERRORS,
        ),
        "", "",
    ),
    "parse_log_quarto_cli": (
        (
            "[smoke] > test {n} ... \x1b[0m\x1b[32mok\x1b[0m (1s)", "[unit] test {n} ... \x1b[0m\x1b[31mFAILED\x1b[0m",
            "[smoke] > /tmp/a{n}.qmd ... \x1b[32mok\x1b[0m", "[smoke] > /tmp/b/{n} ...", "[unit] > \x1b[34mINFO {n}",
            "test result: ok. {n} passed; 0 failed", "[smoke] {n} passed 1 failed 0 steps",
        ),
        "", "\n ERRORS \n[smoke] > late ... \x1b[32mok\x1b[0m\n",
    ),
    "parse_log_p5js": (
        (
            "  {n}) suite {n}", "       name {n}:", "         lower {n}:", "     Error: {n}", "{{", "}}", "[", "]",
            "{{ a: {n} }}", "<p>", "</p>", "<div> a </div>", "<p><p> b </p>", "<w{n}>",
        ),
        "", "",
    ),
    "parse_log_karma": (_KARMA, "Starting browser Chrome\n", "\nSUMMARY:\n    ✔ late\n"),
    "parse_log_chart_js": (
        ("Chrome 99.0 (Linux x86_64) test {n} FAILED", "Chrome 99.0 (Linux) Executed {n} of 9"), "", "",
    ),
    "parse_log_marked": (("{n}) test {n}", "  {n}) no", "Message:"), "", ""),
    "parse_log_carbon": (("PASS a/{n}.js", "FAIL a/{n}.js (5.2 s)", "PASS a/{n}.js (52ms)", "PASSED {n}"), "", ""),
    "parse_log_grommet": (("PASS a/{n}.js", "FAIL a/{n}.js (5.2 s)", "PASS a/{n}.js (52ms)", "PASSED {n}"), "", ""),
    "parse_log_jest": (("  ✓ test {n}", "  ✕ test {n} (3 ms)", "  ○ skipped test {n}"), "", ""),
    "parse_log_jest_json": (("[PASSED] a > {n}", "[FAILED] b > {n}", "[SKIPPED] c"), "", ""),
    "parse_log_vitest": (("✓ a.ts > {n} 3ms", "\u00d7 a.ts > {n}", "↓ a.ts > {n} [skipped]"), "", ""),
    "parse_log_tap": (("ok {n} a{n}", "not ok {n} - b{n}", "# tests {n}"), "", ""),
    "parse_log_redis": (("[ok]: a {n} (3 ms)", "[err]: b {n} in tests/b.tcl", "[ignore]: {n}"), "", ""),
    "parse_log_jq": (("PASS: tests/{n}", "FAIL: tests/{n}"), "", ""),
    "parse_log_micropython_test": (("pass  a/{n}.py", "FAIL  b/{n}.py", "skip  c/{n}.py"), "", ""),
    "parse_log_googletest": (("[       OK ] A.b{n} (0 ms)", "[  FAILED  ] A.c{n} (1 ms)", "[ RUN ] A.{n}"), "", ""),
    "parse_log_gotest": (("--- PASS: Test{n} (0.00s)", "    --- FAIL: T/{n} (0.00s)", "--- SKIP: S{n} (0.0s)"), "", ""),
    "parse_log_maven": (("+ mvn test -Dtest=A#b{n}", "[INFO] BUILD SUCCESS", "[INFO] BUILD FAILURE"), "", ""),
    "parse_log_ant": (("    [junit] [PASS] a {n}", "  [junit] [ERR] b {n}", "    [junit] Tests run: {n}"), "", ""),
    "parse_log_gradle_custom": (("a.B > c{n} PASSED", "a.B > d{n} FAILED", "a.B > e{n}", "PASSED", "> :{n}"), "", ""),
    "parse_log_phpunit": (("Suite (A\\B)", " ✔ does {n}", " ✘ does not {n}", " ↩ skips {n}"), "Suite (A\\B)\n", ""),
    "parse_log_minitest": (("test {n}. (A) = 0.01 s = .", "test: b {n}. (A) = 1.00 s = F", "c {n}. = 0.1 = E"), "", ""),
    "parse_log_cucumber": (("Adding {n} .....", "Halving {n} ..F..", "{n} steps"), "", ""),
    "parse_log_ruby_unit": (("test: a{n}: .: (0.01)", "b{n}:\tF", "c{n}: E"), "", ""),
    "parse_log_rspec_transformed_json": (("A b{n} - passed", "A c{n} - failed", "{n} pending"), "", ""),
    "parse_log_cargo": (("test a::b{n} ... ok", "test a::c{n} ... FAILED"), "", ""),
    "parse_log_pytest": (("PASSED t.py::a{n}", "FAILED t.py::b{n} - no", "ERROR t.py::c{n}", "{n} passed"), "", ""),
    "parse_log_pytest_v2": (("PASSED t.py::a{n}[x y]", "FAILED t.py::b{n} - no", "t.py::c{n} ERROR"), "", ""),
    "parse_log_pytest_options": (("PASSED t.py::a{n}[/x/y{n}]", "FAILED t.py::b[//{n}] - no", "XFAIL t.py::c"), "", ""),
    "parse_log_django": (("test_a{n} (m.C) ... ok", "test_b{n} (m.C) ... FAIL", "test_c{n} (m.C) ... ERROR"), "", ""),
    "parse_log_matplotlib": (("PASSED t.py::a{n}[MouseButton.LEFT]", "FAILED t.py::b{n} - no"), "", ""),
    "parse_log_seaborn": (("PASSED t.py::a{n}", "FAILED t.py::b{n} - no"), "", ""),
    "parse_log_sympy": (("test_a{n} ok", "test_b{n} F", "test_c{n} E"), "", ""),
}  # fmt: skip
"""Of each parser: lines, of which `{n}` makes each another, and what stands before and after them."""
VERSIONS = {"parse_log_lighthouse": "10.0", "parse_log_next": "1.0"}
"""Where a parser goes by the version of the instance."""


def written(form: str, rng: Random) -> str:
    """A log for the parser of that name."""
    lines, before, after = FORMS[form]
    count = _counter()
    chosen = [rng.choice(lines).format(n=count()) if rng.random() < 0.8 else rng.choice(_NOISE) for _ in range(12)]
    return before + "\n".join([*chosen, ""]) + after


def _counter() -> Callable[[], int]:
    numbers = iter(range(1, 1000))
    return lambda: next(numbers)
