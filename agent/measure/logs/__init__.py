"""Log parsers, by name: they read the outcome of each test from the text that a test runner prints.

Invariant: a log proves nothing by itself. A caller must know where the log comes from and that the run finished; tests
that the log does not name did not pass. Ids are those of the SWE-bench data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from agent.measure import Outcome
from agent.measure.logs import (
    cargo,
    deno,
    go,
    javascript,
    json_results,
    jvm,
    listed,
    mocha,
    multi,
    native,
    nested,
    php_and_ruby,
    python,
    tap,
)  # fmt: skip
from agent.untrusted import terminal_text

__all__ = ["ALIASES", "PARSERS", "parse"]

LINE_CHARACTERS = 2000
"""Longer lines are ignored: no runner writes them."""

Parser = Callable[[str], Iterable[tuple[str, Outcome]]]
"""Yields every test in a text, in order, with repetitions. The text has no colours, except for `COLOURED`. The
docstring of a parser says how it names tests."""

PARSERS: Mapping[str, Parser] = {
    "pytest": python.pytest,
    "unittest": python.unittest,
    "go": go.verbose,
    "go-json": go.events,
    "node": javascript.node,
    "jest": javascript.jest,
    "vitest": javascript.vitest,
    "vitest-marks": javascript.vitest_marks,
    "tap": tap.tap,
    "tap-whole": tap.whole,
    "cargo": cargo.cargo,
    "maven": jvm.maven,
    "maven-single": jvm.single,
    "gradle": jvm.gradle,
    "ant": jvm.ant,
    "pytest-options": python.pytest_options,
    "pytest-buttons": python.pytest_buttons,
    "sympy": python.sympy,
    "jest-marks": javascript.jest_marks,
    "jest-names": javascript.jest_names,
    "jest-files": javascript.jest_files,
    "karma": nested.karma,
    "karma-failures": listed.chart_js,
    "karma-next": nested.next_js,
    "bpmn-js": listed.bpmn_js,
    "openlayers": listed.openlayers,
    "eslint": listed.eslint,
    "p5js": listed.p5js,
    "numbered": listed.marked,
    "jest-suites": nested.calypso,
    "mocha-line": nested.highlightjs,
    "mocha-suites": nested.lighthouse,
    "cypress": nested.cypress,
    "quarto": deno.quarto,
    "mocha-json": mocha.titles,
    "mocha-json-files": mocha.in_files,
    "mocha-json-raw": mocha.as_written,
    "automake": native.automake,
    "ctest": native.ctest,
    "doctest": native.doctest,
    "googletest": native.googletest,
    "micropython": native.micropython,
    "redis": native.redis,
    "phpunit": php_and_ruby.phpunit,
    "minitest": php_and_ruby.minitest,
    "cucumber": php_and_ruby.cucumber,
    "test-unit": php_and_ruby.test_unit,
    "rspec": php_and_ruby.rspec,
    "told": json_results.json_results,
    "multi-ctest": native.checked,
    "multi-go": multi.packages,
    "multi-go-parents": multi.parents,
    "multi-gradle": multi.gradle,
    "multi-jest": multi.jest,
    "multi-jest-bare": multi.jest_bare,
    "multi-jest-or-vitest": multi.jest_or_vitest,
    "multi-maven": multi.maven,
    "multi-mocha": multi.mocha,
    "multi-vitest": multi.vitest,
}
ALIASES = {
    **{f"parse_log_{name}": name for name in (
        "ant", "cargo", "cucumber", "doctest", "eslint", "googletest", "karma", "minitest", "openlayers", "p5js",
        "phpunit", "pytest", "redis", "sympy",
    )},
    "parse_log_pytest_v2": "pytest",
    "parse_log_django": "unittest",
    "parse_log_gotest": "go",
    "parse_log_jest": "jest-marks",
    "parse_log_vitest": "vitest-marks",
    "parse_log_tap": "tap-whole",
    "parse_log_maven": "maven-single",
    "parse_log_gradle_custom": "gradle",
    **{f"parse_log_{name}": "pytest" for name in (
        "astroid", "astropy", "flask", "marshmallow", "pvlib", "pyvista", "scikit", "seaborn", "sphinx", "sqlfluff",
        "xarray",
    )},
    **{f"parse_log_{name}": "pytest-options" for name in ("pydicom", "pylint", "pytest_options", "requests")},
    "parse_log_matplotlib": "pytest-buttons",
    "parse_log_jest_json": "jest-names",
    **{f"parse_log_{name}": "jest-files" for name in ("carbon", "grommet", "react_pdf")},
    "parse_log_chart_js": "karma-failures",
    "parse_log_marked": "numbered",
    "parse_log_bpmn_js": "bpmn-js",
    "parse_log_calypso": "jest-suites",
    "parse_log_highlightjs": "mocha-line",
    "parse_log_quarto_cli": "quarto",
    "parse_log_prismjs": "mocha-json",
    "parse_log_jq": "automake",
    "parse_log_micropython_test": "micropython",
    "parse_log_ruby_unit": "test-unit",
    "parse_log_rspec_transformed_json": "rspec",
}  # fmt: skip
"""SWE-bench's names (5.0.2, `PARSER_REGISTRY`), without the parsers that depend on the instance."""
WHOLE = ("doctest", "mocha-json", "mocha-json-files", "mocha-json-raw", "told")
"""Parsers of JSON or XML, whose lines may be long."""
COLOURED = ("quarto",)
"""Parsers that need the colours."""


def parse(name: str, text: str) -> dict[str, Outcome]:
    """Return the outcome of each test in a log, in order. For a repeated test the first failure counts, else the last
    outcome.

    Raises:
        KeyError: no parser has this name; see `PARSERS` and `ALIASES`.
    """
    found: dict[str, Outcome] = {}
    parser = ALIASES.get(name, name)
    plain = text if parser in COLOURED else terminal_text(text)
    if parser not in WHOLE:
        plain = "\n".join(line for line in plain.split("\n") if len(line) <= LINE_CHARACTERS)
    for test, outcome in PARSERS[parser](plain):
        if test and not (test in found and found[test].failed):
            found[test] = outcome
    return found
