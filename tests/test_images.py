"""Images in the style of SWE-bench: an environment that only bash activates, a repository inside, any user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from typer.testing import CliRunner

from agent.cli.app import app
from agent.evaluate.verification import apply_patch
from agent.measure.measurer import Measurer, find_baseline
from agent.task import Task
from sandboxes import Provider, Sandbox, Workspace
from sandboxes.commit import CommitProvider
from sandboxes.conformance import LIMITS
from sandboxes.conformance.given import said
from sandboxes.docker.provider import docker_provider
from tests.images import conda_image, nested_image, remove_image

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module", params=[("nonroot", docker_provider), ("", CommitProvider)], ids=["docker", "commit"])
def place(request: pytest.FixtureRequest, engine: docker.DockerClient) -> Iterator[tuple[str, type[Provider]]]:
    """An image and what keeps its states. The one whose user is not root holds a repository of nobody it knows."""
    user, kind = request.param
    name = conda_image(engine, user, "4321:4321" if user else "0:0")
    yield name, kind
    remove_image(engine, name)


@pytest.fixture(scope="module")
def image(place: tuple[str, type[Provider]]) -> str:
    return place[0]


@pytest.fixture(scope="module")
def provider(place: tuple[str, type[Provider]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    provider = place[1](tmp_path_factory.mktemp("images") / "store", LIMITS)
    yield provider
    provider.close()


@pytest.fixture(scope="module")
def base(provider: Provider, image: str):
    return provider.create(Workspace(image=image))


@pytest.fixture
def box(provider: Provider, base) -> Iterator[Sandbox]:
    with provider.at(base) as box:
        yield box


def test_every_command_has_the_environment_that_bash_would_activate(box: Sandbox) -> None:
    ask = "python -c 'import sys, only_in_testbed; print(sys.prefix)'"
    for shell in ("sh", "/bin/sh", "bash"):
        done = box.exec([shell, "-c", ask], timeout_s=100)
        assert done.stdout == b"/opt/miniconda3/envs/testbed\n", done
    assert box.exec(["python", "-c", "import only_in_testbed"], timeout_s=100).exit_code == 0
    assert said(box, "echo $CONDA_DEFAULT_ENV; echo $SECRET_PROMPT; echo $SHLVL$_") == "testbed\na b"
    swebench = "source /opt/miniconda3/bin/activate && conda activate testbed && which python"
    assert box.exec(["bash", "-c", swebench], timeout_s=100).stdout == b"/opt/miniconda3/envs/testbed/bin/python\n"


def test_the_repository_of_the_image_is_the_workspace_and_git_works_in_it(box: Sandbox) -> None:
    assert box.workdir == "/testbed"
    assert said(box, "git log --format=%s; git status --porcelain") == "second\nfirst"


@pytest.fixture
def nested(engine: docker.DockerClient, image: str) -> Iterator[str]:
    name = nested_image(engine, image)
    yield name
    remove_image(engine, name)


def test_a_repository_in_a_folder_of_the_images_workspace_is_the_workspace(
    place: tuple[str, type[Provider]], nested: str, tmp_path: Path
) -> None:
    with place[1](tmp_path / "store", LIMITS) as provider:
        base = provider.create(Workspace(image=nested, nested=True, setup=("pwd > /opt/set-up",)))
        with provider.at(base) as box:
            assert said(box, "pwd; cat /opt/set-up; ls /testbed; git status --porcelain") == (
                "/testbed/limits\n/testbed/limits\nbeside\nlimits"
            )
            box.write("limits.py", b"")
            assert provider.diff(base, box.snapshot()).startswith(b"diff --git a/limits.py b/limits.py\n")
        with provider.at(provider.create(Workspace(image=place[0], nested=True))) as box:
            assert said(box, "pwd") == "/testbed"


def test_commands_run_as_the_images_user_who_owns_the_workspace_and_what_is_written_to_it(
    box: Sandbox, image: str
) -> None:
    user = "1234" if "nonroot" in image else "0"
    home = "/home/nonroot" if "nonroot" in image else "/root"
    box.write("new/file", b"x")
    box.write("limits.py", b"y")
    assert said(box, "id -u; id -g; echo $HOME; cd ~ && pwd && touch here") == f"{user}\n{user}\n{home}\n{home}"
    assert said(box, "touch mine && rm limits.py && stat -c %u . new new/file mine .git") == "\n".join([user] * 5)
    assert said(box, "echo out > /dev/stdout; echo err > /dev/stderr; echo x > /tmp/t; cat < /dev/stdin") == "out"


def test_a_user_of_the_image_cannot_become_root(box: Sandbox, image: str) -> None:
    assert said(box, "grep -h CapEff /proc/self/status | cut -f2") == "0" * 16
    if "nonroot" in image:
        for attempt in ("echo x > /etc/evil", "su -c id", "chown root mine", "cat /etc/shadow"):
            assert box.exec(["sh", "-c", attempt], timeout_s=100).exit_code != 0, attempt


def test_a_user_of_the_image_has_shared_memory_which_is_no_change_of_the_state(provider: Provider, base) -> None:
    with provider.at(base) as box:
        assert said(box, "python3 -c 'import multiprocessing; multiprocessing.Lock()' && stat -c %a /dev/shm") == "1777"
        assert box.snapshot().digest == base.digest


def test_a_repair_is_measured_and_its_patch_applies(provider: Provider, base, image: str) -> None:
    task = Task("limits", "3 is within", Workspace(image=image), "python -m pytest -q -p no:cacheprovider")
    baseline = find_baseline(provider, task, base)
    assert baseline.adapter == "pytest"
    with provider.at(base) as box:
        box.write("limits.py", box.read("limits.py").replace(b"<", b"<="))
        fixed = box.snapshot()
    report = Measurer(provider, task, base, baseline).measure(fixed)
    assert baseline.failures == ("test_limits.py::test_at_the_limit",)
    assert (len(report.passes), report.failures) == (2, ())
    patched, why = apply_patch(provider, base, provider.diff(base, fixed))
    assert patched is not None, why
    assert patched.digest == fixed.digest


def test_what_set_up_made_belongs_to_the_user_too(provider: Provider, image: str) -> None:
    setup = ("echo made > made.txt; mkdir -p /opt/tools; which python > where.txt; id -u > who.txt",)
    with provider.at(provider.create(Workspace(image=image, setup=setup))) as box:
        assert box.read("where.txt") == b"/opt/miniconda3/envs/testbed/bin/python\n"
        assert box.read("who.txt") == b"0\n"
        assert said(box, "echo more >> made.txt; cat made.txt") == "made\nmore"


@pytest.mark.slow
def test_solving_needs_no_checkout_where_the_image_holds_one(image: str, tmp_path: Path) -> None:
    out, patch = tmp_path / "run", tmp_path / "fix.patch"
    arguments = ["--issue", "3 is within", "--image", image, "--out", str(out), "--patch-out", str(patch)]
    done = CliRunner().invoke(app, ["solve", *arguments, "--goal-test", "test_limits.py::test_at_the_limit"])
    assert done.exit_code in (0, 1), done.output
    assert b"+    return n <= LIMIT" in patch.read_bytes(), done.output


def test_applying_needs_a_checkout(image: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["solve", "--issue", "x", "--image", image, "--apply"])
    assert "--repo" in str(done.exception)
