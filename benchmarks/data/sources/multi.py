"""Multi-SWE-bench: a file for each repository, and rows with columns of their own.

The images hold both patches and the scripts that apply them, which a solver must not find. Grading uses the unchanged
image, with the patch to grade in place of the solution's.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.task import Task
from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.sources import columns, images
from benchmarks.data.sources.columns import Row
from sandboxes import Workspace

_RUN = "bash /home/run.sh"
"""Runs the tests on the checkout as it is (Multi-SWE-bench, `harness/repos`)."""
_HIDE = "rm -f /home/fix.patch /home/test.patch /home/fix-run.sh /home/test-run.sh"
_GOALS = ("f2p_tests", "s2p_tests", "n2p_tests")
_PATCH = "/home/fix.patch"
_SCRIPT = f"""#!/bin/bash
git config --global apply.whitespace nowarn
: '>>>>> Start Test Output'
if test -s {_PATCH}; then bash /home/fix-run.sh; else bash /home/test-run.sh; fi || true
: '>>>>> End Test Output'
"""
"""Runs the tests and ignores the exit code, like the set's harness, as the scripts of several repositories continue
after the tests. Without the setting, git would print lines of a patch that end with spaces, and they would be read as
results."""
PARSERS = {
    "cargo": "burntsushi/ripgrep clap-rs/clap nushell/nushell rayon-rs/rayon serde-rs/serde sharkdp/bat sharkdp/fd "
    "tokio-rs/bytes tokio-rs/tokio tokio-rs/tracing",
    "multi-go": "cli/cli gin-gonic/gin",
    "multi-go-parents": "grpc/grpc-go zeromicro/go-zero",
    "maven": "alibaba/fastjson2 apache/dubbo fasterxml/jackson-core fasterxml/jackson-databind "
    "fasterxml/jackson-dataformat-xml",
    "multi-maven": "google/gson",
    "multi-gradle": "elastic/logstash googlecontainertools/jib mockito/mockito",
    "multi-vitest": "sveltejs/svelte vuejs/core",
    "multi-jest": "anuraghazra/github-readme-stats iamkun/dayjs",
    "multi-jest-bare": "darkreader/darkreader",
    "multi-jest-or-vitest": "kong/insomnia",
    "multi-mocha": "axios/axios",
    "mocha-json": "expressjs/express",
    "mocha-json-files": "mui/material-ui",
    "automake": "facebook/zstd jqlang/jq",
    "googletest": "ponylang/ponyc yhirose/cpp-httplib",
    "ctest": "fmtlib/fmt nlohmann/json simdjson/simdjson",
    "multi-ctest": "catchorg/catch2",
}
"""The log parser of each repository (as in Multi-SWE-bench's `harness/repos`)."""
SPECIFIC = {("expressjs/express", number): "multi-mocha" for number in (4212, 4852, 5555, 5841)}
_UNNAMED = "all tests"
"""The name that rows use for all tests together if the log names no test and only has a sentence on the result."""


def multi(row: Row) -> Instance:
    """A row of Multi-SWE-bench. Tests that are skipped or missing without the solution have to pass as well. If no
    parser is known for the log of its repository, grading is refused."""
    org, repo, number = row["org"], row["repo"], row["number"]
    image = images.image_of(row, f"mswebench/{org}_m_{repo}:pr-{number}".lower())
    hidden = Hidden(
        fail_to_pass=tuple(test for column in _GOALS for test in _names(row.get(column))),
        pass_to_pass=tuple(_names(row["p2p_tests"])),
        patch=columns.patch(row["fix_patch"]),
        test_patch=columns.patch(row["test_patch"]),
        eval_script=_SCRIPT,
        patch_file=_PATCH,
        log_parser=_parser(row),
        workspace=Workspace(image=image, mount=f"/home/{repo}"),
        row=row,
    )
    task = Task(
        id=columns.instance_name(columns.first(row, "instance_id") or f"{org}__{repo}-{number}"),
        statement=_statement(row),
        workspace=images.checked_out(image, _HIDE, mount=f"/home/{repo}"),
        test_command=_RUN,
        base=str(columns.read_object(row["base"]).get("sha", "")),
        tags={"repo": f"{org}/{repo}"},
    )
    return Instance(task, hidden, repo=f"{org}/{repo}", language=columns.first(row, "language").lower())


def _parser(row: Row) -> str:
    """The name of the parser for the row's log; empty if none is known."""
    name = f"{row['org']}/{row['repo']}".lower()
    if any(_UNNAMED in _names(row.get(column)) for column in (*_GOALS, "p2p_tests")):
        return ""
    usual = next((parser for parser, repos in PARSERS.items() if name in repos.split()), "")
    return SPECIFIC.get((name, row["number"]), usual)


def _names(tests: object) -> Iterable[str]:
    """The names of the tests in a column, which are the keys of a dict. A table adds the keys of its other rows, with
    null for a value."""
    if tests is None:
        return []
    if isinstance(tests, str | dict):
        return [name for name, end in columns.read_object(tests).items() if end is not None]
    raise ValueError(f"{str(tests)[:80]!r} is not a dict of tests")


def _statement(row: Row) -> str:
    """The issues that the change resolves; if none is named, the title and body of the change."""
    issues = row.get("resolved_issues") or [{"title": row["title"], "body": row["body"]}]
    return "\n\n".join(f"{issue['title']}\n\n{issue.get('body') or ''}".strip() for issue in issues)
