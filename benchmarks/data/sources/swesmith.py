"""SWE-smith: rows whose patch introduces the bug, so the solution is to revert it.

The image of a repository has the correct state at HEAD. Each bug is a branch of the mirror, without the tests that find
it (SWE-smith, `harness/utils.py`). Grading starts with the correct state and all tests, and applies the bug.
"""

from __future__ import annotations

from shlex import quote

from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.sources import columns, images
from benchmarks.data.sources.columns import Row
from benchmarks.data.sources.swebench import PYTEST, instance_of, pytest_on


def smith(row: Row) -> Instance:
    """A row of SWE-smith."""
    bug = columns.patch(row["patch"])
    named = _published(row["image_name"])
    goal, kept = columns.test_ids(row["FAIL_TO_PASS"]), columns.test_ids(row["PASS_TO_PASS"])
    hidden = Hidden(
        fail_to_pass=goal,
        pass_to_pass=kept,
        patch=b"",
        test_patch=b"",
        solution=images.undoing(bug),
        test_command=pytest_on((*goal, *kept)),
        workspace=images.checked_out(named, images.applying(bug), images.SINGLE_COMMIT),
        row=row,
    )
    branch = images.checked_out(named, _on_branch(row["instance_id"]), images.SINGLE_COMMIT)
    return instance_of(row, branch, hidden, PYTEST, language="python")


def _on_branch(name: str) -> str:
    """A command that checks out the branch of the bug, and fetches it first if the image does not have it. The branch's
    history shows how the bug was made."""
    branch = quote(name)
    return f"""set -e
git() {{ command git -c safe.directory='*' "$@"; }}
git rev-parse -q --verify {branch} >/dev/null || git fetch -q origin {branch}:{branch}
git checkout -q {branch}"""


def _published(name: str) -> str:
    """The published name of an image. Older rows have the name that it was built under, without an owner and with
    `__`."""
    return images.qualified(name if "/" in name else f"jyangballin/{name.replace('__', '_1776_')}:latest")
