"""SWE-smith: rows whose patch makes the bug, so that the solution is its reverse.

The image of a repository has its good state at HEAD; each bug is a branch of the mirror, where the tests that find it
are taken away (SWE-smith, `harness/utils.py`). Grading begins with the good state and the bug, all tests in place.
"""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

from benchmarks.data.instances import Hidden, Instance
from benchmarks.data.sources import columns, images
from benchmarks.data.sources.columns import Row
from benchmarks.data.sources.reversing import reversed_patch
from benchmarks.data.sources.swebench import PYTEST, TESTBED, instance_of, pytest_on

__all__ = ["smith"]


def smith(row: Row) -> Instance:
    """A row of SWE-smith."""
    bug = columns.patch(row["patch"])
    named = _published(row["image_name"])
    goal, kept = columns.test_ids(row["FAIL_TO_PASS"]), columns.test_ids(row["PASS_TO_PASS"])
    hidden = Hidden(
        fail_to_pass=goal,
        pass_to_pass=kept,
        patch=reversed_patch(bug),
        test_patch=b"",
        test_command=pytest_on((*goal, *kept)),
        workspace=images.checked_out(named, TESTBED, images.applying(bug), images.ALONE),
        row=row,
    )
    instance = instance_of(row, named, hidden, PYTEST, language="python")
    branch = images.checked_out(named, TESTBED, _on_branch(row["instance_id"]), images.ALONE)
    return replace(instance, task=replace(instance.task, workspace=branch))


def _on_branch(name: str) -> str:
    """The state of the bug, whose history tells what made it: fetched where the image does not have it yet."""
    branch = quote(name)
    return f"""set -e
git() {{ command git -c safe.directory='*' "$@"; }}
git rev-parse -q --verify {branch} >/dev/null || git fetch -q origin {branch}:{branch}
git checkout -q {branch}"""


def _published(name: str) -> str:
    """Older rows name the image as it was built; it is published with an owner, and without the `__`."""
    return images.qualified(name if "/" in name else f"jyangballin/{name.replace('__', '_1776_')}:latest")
