"""Fixtures that several test modules share."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import docker
import hypothesis
import pytest
import typer.main

from sandboxes import Provider, Sandbox, Snapshot
from sandboxes.docker.client import connect
from sandboxes.docker.provider import probe
from sandboxes.namespace import provider as namespace
from tests.clients import KEY, Client, Serve, clients, servers
from tests.images import remove_made

pytest.register_assert_rewrite("sandboxes.conformance")
hypothesis.settings.register_profile("unhurried", deadline=None)  # a loaded machine is no failure
hypothesis.settings.register_profile("ci", hypothesis.settings.get_profile("ci"), max_examples=50)  # of two cores
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)
hypothesis.settings.load_profile("unhurried")  # --hypothesis-profile goes before it


LONG = [
    "docs",
    "sandbox_commit",
    "runners",
    "checkouts",
    "sandbox_docker",
    "recipe_mechanisms",
    "rollout_rounds",
    "lines_of_work",
    "recipes",
    "cli",
    "forged_results",
    "custom_texts",
    "sandbox_namespace",
    "solving",
    "interruption",
    "calibrated",
    "chat_round",
    "kill_moments",
    "stages",
    "images",
    "web_browser",
    "first_lines",
    "acts",
    "recipe_commands",
    "depth",
    "delegation",
    "bench_killed",
    "exactness",
    "sources_folders",
    "recall",
    "disk",
    "second_rounds",
    "mutate_policy",
    "killed",
    "history",
    "journal",
    "judged_searches",
    "replay",
    "crosscheck",
    "debugging",
    "search",
    "landscapes",
    "tree",
    "plans",
    "pipelines",
    "streaming",
    "perf_scripts",
    "reproduction",
    "long_conversations",
    "siblings",
    "bench_cli",
    "bench_grading",
    "chat_policy",
    "gate",
    "mutate_rounds",
    "export",
    "summaries",
    "copied_runs",
    "shared_states",
]
"""Files of tests that take long, the longest first: a worker takes a whole file, and none begins one at the end."""


LEFT_OUT = ("slow", "docker", "browser")
"""The markers of tests that `--quick` leaves out."""
COLLECTED = pytest.StashKey[list[pytest.Item]]()
"""All that a run collected, before options leave out some."""
COUNT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help=f"leave out tests that are marked {', '.join(LEFT_OUT)}")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Begin with the files that take long, and leave out what a quick run does."""
    config.stash[COLLECTED] = list(items)
    yield
    places = {f"test_{name}.py": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONG)))
    if config.getoption("--quick"):
        out = [item for item in items if left_out(item)]
        items[:] = [item for item in items if not left_out(item)]
        config.hook.pytest_deselected(items=out)
        config.stash[COUNT] = len(out)
        getattr(config, "workeroutput", {})["left_out"] = len(out)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no test need look for garbage in it."""
    gc.freeze()


def left_out(item: pytest.Item) -> bool:
    """Whether a quick run leaves the test out."""
    return any(item.get_closest_marker(name) for name in LEFT_OUT)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Remember what a worker of pytest-xdist left out; each collects all tests."""
    node.config.stash[COUNT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what a quick run has not tested."""
    if count := config.stash.get(COUNT, 0):
        terminalreporter.write_line(
            f"Left out: {count:,} tests that take long or need Docker or a browser. `make test-all` runs them too."
        )


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the user's own cache, or what is kept of earlier batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _plain_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests inside a sandbox of this machine load no plugins: those that are tools of development take seconds."""
    environment = tmp_path_factory.mktemp("plain")
    (environment / "bin").mkdir()
    (environment / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
    for name in ("python", "python3"):
        program = environment / "bin" / name
        program.write_text(f'#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec {sys.executable} "$@"\n')
        program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIRTUAL_ENV", str(environment))
        yield


@pytest.fixture(scope="session", autouse=True)
def _commands_made_once() -> Iterator[None]:
    """Typer makes the options of all commands anew each time that one is run: a tenth of a second."""
    made = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", made)
        patch.setattr("typer.testing._get_command", made)
        yield


@pytest.fixture(scope="session")
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for stores; skips where user namespaces do not work."""
    place = tmp_path_factory.mktemp("stores")
    problem = namespace.probe(place)
    if problem:
        pytest.skip(problem)
    return place


@pytest.fixture(scope="module")
def provider(namespaces: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """Sandboxes of this machine's own, with a store that the tests of a module share."""
    with namespace.namespace_provider(tmp_path_factory.mktemp("store")) as provider:
        yield provider


@pytest.fixture
def box(provider: Provider, base: Snapshot) -> Iterator[Sandbox]:
    """A fork of the module's own base state, for one test."""
    with provider.at(base) as box:
        yield box


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker.DockerClient]:
    """A client of an engine that can run sandboxes. Without one these tests are skipped, or fail if they must not.
    What they made there is gone at the end."""
    why = probe()
    if why and os.environ.get("RAMIFY_REQUIRE_DOCKER") == "1":
        pytest.fail(f"RAMIFY_REQUIRE_DOCKER=1 and {why}")
    if why:
        pytest.skip(why)
    client = connect()
    yield client
    remove_made(client, tmp_path_factory.getbasetemp())
    client.close()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts scripted servers for models, with a key for them."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with servers() as start:
        yield start


@pytest.fixture
def client() -> Iterator[Client]:
    """Makes models of such servers."""
    with clients() as make:
        yield make
