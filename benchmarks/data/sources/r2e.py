"""R2E-Gym: rows with the required outcome of every test; the tests are in the image, outside of the repository."""

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

_PYTHON = "/testbed/.venv/bin"
_ENV = {"PATH": f"{_PYTHON}:/root/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_HIDE = "rm -rf /r2e_tests /testbed/r2e_tests /testbed/run_tests.sh"
_LINK = "ln -sfn /r2e_tests /testbed/r2e_tests"
_ISSUE = re.compile(r"\[ISSUE\](.*)\[/ISSUE\]", re.DOTALL)


def r2e(row: Row) -> Instance:
    """A row of R2E-Gym. It does not tell which tests fail without the solution, so all that pass with it are goals."""
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
    return replace(images.checked_out(image, command), env=_ENV)


def _statement(text: str) -> str:
    """The issue without the text around it."""
    issue = _ISSUE.search(text)
    return issue[1].strip() if issue else text


def _plain(name: str) -> str:
    """A test's name without terminal colours and without the reason of its failure."""
    return re.sub(r"\x1b\[\d*m", "", name).partition(" - ")[0]


def _solution(row: Row) -> bytes:
    """The commit's changes to files that are not tests. The row has the old and the new content of each file."""
    diffs = columns.read_object(row["parsed_commit_content"])["file_diffs"]
    relevant = set(row["relevant_files"])
    by_path = [(diff["header"]["file"]["path"], diff) for diff in diffs]
    return patch([_difference(path, diff) for path, diff in by_path if path in relevant])


def _difference(path: str, diff: dict[str, Any]) -> Difference:
    old = _side(diff["old_file_content"], diff.get("minus_file"))
    return Difference(path, old, _side(diff["new_file_content"], diff.get("plus_file")))


def _side(content: str, file: dict[str, str] | None) -> Side | None:
    if file is not None and file["path"] == "/dev/null":
        return None
    return Side("f", 0o644, content.encode("utf-8", "surrogateescape"))
