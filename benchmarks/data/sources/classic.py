"""Eval scripts for rows of SWE-bench's first generation in languages other than Python.

These rows name only a repository and a version; only the harness knew how to test that version. The scripts are those
that the harness of 4.1.0 made, from its specifications in `specs.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.data.sources import changes
from benchmarks.data.sources.columns import Row

_SPECS = Path(__file__).parent / "specs.json"
_DELIMITER = "EOF_114329324912"
_CALYPSO = "Automattic/wp-calypso"
_SNAPSHOT = re.compile(r"__snapshots__/(.*).js.snap$")
_CONFIGS = {
    "js": ("10.10.0", "10.12.0", "10.13.0", "10.14.0", "10.15.2", "10.16.3"),
    "json": (
        "6.11.5", "8.9.1", "8.9.3", "8.9.4", "8.11.0", "8.11.2", "10.4.1", "10.5.0", "10.6.0", "10.9.0",
    ),
}  # fmt: skip
"""The suffix of jest's configuration file in versions of Calypso."""


@cache
def _repos() -> Mapping[str, Any]:
    repos: Mapping[str, Any] = json.loads(_SPECS.read_text("utf-8"))["repos"]
    return repos


def parser_and_type(repo: str) -> tuple[str, str]:
    """The log parser of a repository and its eval type; the parser is empty for an unknown repository."""
    entry = _repos().get(repo, {})
    return entry.get("parser", ""), entry.get("eval_type", "pass_and_fail")


def eval_script(row: Row, version: str) -> str:
    """The script that grades a row; empty if it is not known how its version is tested.

    Raises:
        ValueError: the test patch is malformed.
    """
    specs = _repos().get(row["repo"], {"specs": ()})["specs"]
    spec = next((spec for spec in specs if version in spec["versions"]), None)
    if spec is None:
        return ""
    changed = changes.changes(row["test_patch"].encode("utf-8", "surrogateescape"))
    tests = _of_calypso(version, changed) if row["repo"] == _CALYPSO else spec["test"]
    return "\n".join(_lines(row, [change.old for change in changed if change.old], spec["build"], tests))


def _lines(row: Row, existing: Sequence[str], build: Sequence[str], tests: Sequence[str]) -> list[str]:
    put_back = (
        f"git checkout {row['base_commit']} {' '.join(existing)}" if existing else 'echo "No test files to reset"'
    )
    return [
        "#!/bin/bash",
        "set -uxo pipefail",
        "cd /testbed",
        "git config --global --add safe.directory /testbed",
        "cd /testbed",
        put_back,
        f"git apply --verbose --reject - <<'{_DELIMITER}'\n{row['test_patch']}\n{_DELIMITER}",
        *build,
        ": '>>>>> Start Test Output'",
        *tests,
        ": '>>>>> End Test Output'",
        put_back,
        "",
    ]


def _of_calypso(version: str, changed: Sequence[changes.Change]) -> list[str]:
    """The commands that run the changed test files. For a snapshot file, the parent of its folder is run."""
    return [command for change in changed for command in _on_path(version, change.new or change.old or "")]


def _on_path(version: str, path: str) -> list[str]:
    if _SNAPSHOT.search(path):
        path = "/".join(path.split("/")[:-2])
    if path.startswith(("client", "packages")):
        package = path.split("/")[0]
        ending = next((ending for ending, versions in _CONFIGS.items() if version in versions), "")
        jest = f"./node_modules/.bin/jest --verbose -c=test/{package}/jest.config.{ending} '{path}'"
        return [jest if ending else f"npm run test-{package} --verbose '{path}'"]
    if path.startswith("test/e2e"):
        return ["cd test/e2e", f"NODE_CONFIG_ENV=test npm run test {path}", "cd ../.."]
    return []
