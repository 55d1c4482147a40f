"""R2E-Gym: rows that say how every test has to end, with the tests in the image, outside of the repository."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from agent.task import Task
from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.sources import columns, images
from benchmarks.data.sources.columns import Row
from sandboxes import Workspace
from sandboxes.git.diff import Difference, Side, patch

__all__ = ["r2e"]

_PYTHON = "/testbed/.venv/bin"
_ENV = {"PATH": f"{_PYTHON}:/root/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_HIDE = "rm -rf /r2e_tests /testbed/r2e_tests /testbed/run_tests.sh"
_LINK = "ln -sfn /r2e_tests /testbed/r2e_tests"
_ISSUE = re.compile(r"\[ISSUE\](.*)\[/ISSUE\]", re.DOTALL)


def r2e(row: Row) -> Instance:
    """A row of R2E-Gym. Which tests fail without the solution it does not say: all that pass with it are its goal."""
    repo, commit = row["repo_name"], row["commit_hash"]
    outcomes = {_plain(name): str(end) for name, end in columns.read_object(row["expected_output_json"]).items()}
    image = images.image_of(row, f"namanjain12/{repo}_final:{commit}")
    hidden = Hidden(
        fail_to_pass=tuple(name for name, end in outcomes.items() if end == "PASSED"),
        pass_to_pass=(),
        patch=_solution(row),
        test_patch=b"",
        test_command="bash run_tests.sh",
        outcomes=outcomes,
        workspace=_workspace(image, _LINK),
        row=row,
    )
    task = Task(
        id=columns.instance_name(f"{repo}__{commit[:8]}"),
        statement=_statement(row["problem_statement"]),
        workspace=_workspace(image, _HIDE),
        test_command=f"{_PYTHON}/python -m pytest -q -p no:cacheprovider",
        tags={"repo": repo},
    )
    return Instance(task, hidden, repo=repo)


def _workspace(image: str, command: str) -> Workspace:
    return replace(images.checked_out(image, "/testbed", command), env=_ENV)


def _statement(text: str) -> str:
    """The issue without what it is wrapped in."""
    found = _ISSUE.search(text)
    return found[1].strip() if found else text


def _plain(name: str) -> str:
    """A test's name without the colours of the terminal, and without what it failed with."""
    return re.sub(r"\x1b\[\d*m", "", name).partition(" - ")[0]


def _solution(row: Row) -> bytes:
    """The commit's changes to what is no test, which the row has as the old and the new content of each file."""
    changed = columns.read_object(row["parsed_commit_content"])["file_diffs"]
    wanted = set(row["relevant_files"])
    sides = [(each["header"]["file"]["path"], each) for each in changed]
    return patch([Difference(path, _old(each), _new(each)) for path, each in sides if path in wanted])


def _old(each: dict[str, Any]) -> Side | None:
    return _side(each["old_file_content"], each.get("minus_file"))


def _new(each: dict[str, Any]) -> Side | None:
    return _side(each["new_file_content"], each.get("plus_file"))


def _side(content: str, file: dict[str, str] | None) -> Side | None:
    if file is not None and file["path"] == "/dev/null":
        return None
    return Side("f", 0o644, content.encode("utf-8", "surrogateescape"))
