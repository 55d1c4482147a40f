"""Rows whose checkout is in an image: what a solver finds there, and how they are graded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from agent.actions import Action, Edit, Shell
from agent.budget import Budget
from agent.engine.components import Components
from agent.evaluate.value.tests import PassingTests
from agent.learning.export.documents import export
from agent.measure.reading import COMMAND
from agent.policy import Proposal
from agent.run.action_log import action_records, task_of
from agent.run.run import Run
from agent.search.linear import Linear
from agent.solver.solve import solve
from benchmarks.data.instances import Instance
from benchmarks.data.sources import Source, open_source
from benchmarks.data.sources.images import applying
from benchmarks.grading.grading import examine, grade
from benchmarks.grading.validation import check
from sandboxes import Provider
from sandboxes.conformance import LIMITS
from sandboxes.conformance.given import said
from sandboxes.docker.provider import docker_provider
from tests.images import conda_image, nested_image, remove_image
from tests.instances import write
from tests.policies import Scripted
from tests.rows import LIVE

pytestmark = pytest.mark.docker

FIX = """diff --git a/limits.py b/limits.py
--- a/limits.py
+++ b/limits.py
@@ -2,4 +2,4 @@


 def within(n):
-    return n < LIMIT
+    return n <= LIMIT
"""
FIX = FIX.replace("\n\n\n", "\n \n \n")
TESTS = """diff --git a/test_more.py b/test_more.py
new file mode 100644
--- /dev/null
+++ b/test_more.py
@@ -0,0 +1,5 @@
+from limits import within
+
+
+def test_below():
+    assert within(3) and within(2)
"""
WORSE = FIX.replace("n <= LIMIT", "True")
FUTURE = """set -e
git() { command git -c safe.directory='*' -c user.name=n -c user.email=e@example.invalid "$@"; }
git remote add origin https://example.invalid/x
git branch -q other
git commit -q --allow-empty -m future && git tag later && git reset -q --hard HEAD~1"""


@pytest.fixture(scope="module")
def image(engine: docker.DockerClient) -> Iterator[str]:
    name = conda_image(engine)
    yield name
    remove_image(engine, name)


@pytest.fixture(scope="module")
def nested(engine: docker.DockerClient, image: str) -> Iterator[str]:
    name = nested_image(engine, image)
    yield name
    remove_image(engine, name)


@pytest.fixture(scope="module")
def provider(image: str, nested: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """Closed before the images are removed."""
    provider = docker_provider(tmp_path_factory.mktemp("images") / "store", LIMITS)
    yield provider
    provider.close()


def opened(folder: Path, row: dict[str, Any]) -> tuple[Source, Instance]:
    (folder / "rows.json").write_text(json.dumps([row]))
    source = open_source(str(folder / "rows.json"), folder / "clones")
    (instance,) = source.instances()
    return source, instance


def classic(image: str) -> dict[str, Any]:
    return {
        "repo": "example/limits",
        "instance_id": "example__limits-1",
        "base_commit": "",
        "patch": FIX,
        "test_patch": TESTS,
        "problem_statement": "3 is within",
        "version": "1.0",
        "FAIL_TO_PASS": '["test_more.py::test_below"]',
        "PASS_TO_PASS": "[]",
        "environment_setup_commit": "",
        "image": image,
    }


def test_a_row_is_graded_in_its_image_by_the_files_of_its_test_patch(
    image: str, provider: Provider, tmp_path: Path
) -> None:
    source, instance = opened(tmp_path, classic(image))
    assert "pytest" in instance.hidden.test_command
    found = check(instance, source, provider)
    assert (found.valid, found.gold, found.empty) == (True, "", "")
    verdict = grade(instance, FIX.replace("n <= LIMIT", "n > LIMIT").encode(), source, provider)
    assert (verdict.status, verdict.failing) == ("unresolved", ("test_more.py::test_below",))


PRINTED = {"test_cmds": ["python -m pytest -rA -p no:cacheprovider > beside"], "print_cmds": ["cat beside"]}
PLAIN = {"test_cmds": ["python -m pytest -rA -p no:cacheprovider"]}
ROWS = {
    "its log is printed": {**PRINTED, "log_parser": "pytest"},
    "pytest is asked": {**PLAIN, "log_parser": ""},
    "another runner's log": {"test_cmds": ["python -m pyt'es't -rA"], "log_parser": "parse_log_pytest_v2"},
}


def nested_row(image: str, **columns: Any) -> dict[str, Any]:
    tests = {
        "FAIL_TO_PASS": ["limits/test_more.py::test_below"],
        "PASS_TO_PASS": ["limits/test_limits.py::test_beyond"],
    }
    return {**LIVE, **classic(image), **tests, **columns}


@pytest.mark.parametrize("columns", ROWS.values(), ids=ROWS)
def test_a_repository_in_a_folder_of_the_testbed_is_patched_there_and_tested_once_from_the_testbed(
    columns: dict[str, Any], nested: str, provider: Provider, tmp_path: Path
) -> None:
    source, instance = opened(tmp_path, nested_row(nested, **columns))
    found = check(instance, source, provider)
    assert (found.valid, found.gold, found.empty) == (True, "", "")
    report = examine(instance, instance.hidden.patch, source, provider).report
    assert report is not None
    assert len(report.outcomes) == 3


def test_a_search_in_a_folder_of_the_testbed_and_what_is_exported_of_it_know_the_folder(
    nested: str, provider: Provider, tmp_path: Path
) -> None:
    def sit(action: Action, max_nodes: int) -> Run:
        policy = Scripted(lambda position: Proposal((action,)))
        with Run.open(tmp_path / "run") as run:
            solve(
                instance.task, Components(provider, policy, Linear(), PassingTests(), Budget(max_nodes=max_nodes)), run
            )
        return run

    _, instance = opened(tmp_path, nested_row(nested, **PLAIN))
    sit(Shell("touch noted"), 2)
    run = sit(Edit("/testbed/limits/limits.py", "n < LIMIT", "n <= LIMIT"), 3)
    assert run.tree.root.report.failures == ("limits/test_limits.py::test_at_the_limit",)
    assert run.tree[2].report.failures == ()
    assert [action_record.path for action_record in action_records(run.tree.path(2), task_of(run))] == ["", "limits.py"]
    (exported,) = export([tmp_path / "run"], "traj", {}, None)
    told = json.loads(exported.read_text())
    assert told["info"]["config"]["environment"]["cwd"] == "/testbed/limits"
    assert "/testbed/limits" in told["messages"][1]["content"]


def test_what_came_after_the_base_commit_and_where_it_came_from_cannot_be_looked_up(
    image: str, provider: Provider, tmp_path: Path
) -> None:
    _, instance = opened(tmp_path, classic(image))
    place = instance.task.workspace
    with provider.at(provider.create(replace(place, setup=(FUTURE, *place.setup)))) as box:
        assert said(box, "git log --all --format=%s; git remote; git tag; git status --porcelain") == "second\nfirst"
        assert said(box, "git fsck --unreachable --no-progress 2>&1; git reflog") == ""


def test_a_bug_of_swe_smith_is_graded_on_the_good_state_with_the_bug(
    image: str, provider: Provider, tmp_path: Path
) -> None:
    row = {
        "instance_id": "instance__of.smith__1",
        "repo": "swesmith/example__limits.12345678",
        "patch": WORSE,
        "FAIL_TO_PASS": ["test_limits.py::test_beyond"],
        "PASS_TO_PASS": [],
        "image_name": "example/limits",
        "problem_statement": "4 is not within",
    }
    source, instance = opened(tmp_path, row)
    assert instance.hidden.workspace is not None
    there = replace(instance.hidden.workspace, image=image)
    made = f"{applying(WORSE.encode())}\ngit branch -q {instance.id}\ngit reset -q --hard HEAD~1"
    branch = replace(instance.task.workspace, image=image, setup=(made, FUTURE, *instance.task.workspace.setup))
    instance = replace(
        instance, task=replace(instance.task, workspace=branch), hidden=replace(instance.hidden, workspace=there)
    )
    found = check(instance, source, provider)
    assert (found.gold, found.empty) == ("", "")
    with provider.at(provider.create(branch)) as box:
        assert said(box, "git log --all --format=%s; git remote; git for-each-ref") == "base"


def test_a_harbor_task_is_resolved_by_a_reward_of_one(image: str, provider: Provider, tmp_path: Path) -> None:
    task = {
        "task.toml": f'[environment]\ndocker_image = "{image}"\n'.encode(),
        "instruction.md": b"3 is within.\n",
        "tests/test.sh": b"bash /tests/inner/run.sh && echo 1 > /logs/verifier/reward.txt\n",
        "tests/inner/run.sh": b"python -c 'from limits import within; assert within(3)'\n",
        "solution/solve.sh": b"sed -i 's/n < LIMIT/n <= LIMIT/' limits.py\n",
    }
    write(tmp_path / "task", task)
    source = open_source(str(tmp_path / "task"), tmp_path / "clones")
    (instance,) = source.instances()
    found = check(instance, source, provider)
    assert (found.valid, found.gold, found.empty) == (True, "", "")
    assert grade(instance, WORSE.replace("True", "False").encode(), source, provider).failing == (COMMAND,)
