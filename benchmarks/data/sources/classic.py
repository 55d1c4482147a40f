"""Eval scripts of rows of SWE-bench's first generation in other languages than Python, as its harness of 4.1.0 made
them: these rows name a repository and a version, and how that is tested only the harness knew (`specs.json`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.data.sources import changes
from benchmarks.data.sources.columns import Row

__all__ = ["eval_script", "parser_and_type"]

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
"""The ending of jest's configuration in versions of Calypso."""


@cache
def _repos() -> Mapping[str, Any]:
    repos: Mapping[str, Any] = json.loads(_SPECS.read_text("utf-8"))["repos"]
    return repos


def parser_and_type(repo: str) -> tuple[str, str]:
    """What reads the logs of a repository, and how; empty: it is none of these."""
    known = _repos().get(repo, {})
    return known.get("parser", ""), known.get("eval_type", "pass_and_fail")


def eval_script(row: Row, version: str) -> str:
    """The script that grades a row; empty: it is not known how its version is tested.

    Raises:
        ValueError: the test patch is none.
    """
    known = _repos().get(row["repo"], {"specs": ()})["specs"]
    spec = next((each for each in known if version in each["versions"]), None)
    if spec is None:
        return ""
    changed = changes.changes(row["test_patch"].encode("utf-8", "surrogateescape"))
    tests = _of_calypso(version, changed) if row["repo"] == _CALYPSO else spec["test"]
    return "\n".join(_lines(row, [each.old for each in changed if each.old], spec["build"], tests))


def _lines(row: Row, there: Sequence[str], build: Sequence[str], tests: Sequence[str]) -> list[str]:
    put_back = f"git checkout {row['base_commit']} {' '.join(there)}" if there else 'echo "No test files to reset"'
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
    """A command for each file of tests; of a snapshot its folder's parent is run."""
    return [command for each in changed for command in _on_path(version, each.new or each.old or "")]


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
