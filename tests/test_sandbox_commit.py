"""The provider that commits containers keeps the core of the contract, on any image that has a shell."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
import pytest

from agent.build.sandboxes import make_provider
from agent.config import load
from agent.evaluate.verification import apply_patch
from agent.measure import Outcome
from agent.measure.measurer import Measurer, find_baseline
from agent.settings import Settings
from agent.task import Task
from sandboxes import Provider, Sandbox, SandboxUnavailable, Snapshot, SnapshotMissing, Workspace
from sandboxes.commit import CommitProvider
from sandboxes.commit.command import Command, run
from sandboxes.commit.container import Box
from sandboxes.commit.states import MAX_LAYERS
from sandboxes.conformance import LIMITS, SandboxContract, sample, sh
from sandboxes.conformance.given import python
from sandboxes.conformance.hidden import Links
from sandboxes.conformance.kernel import Unprivileged
from sandboxes.conformance.limits import Limited
from sandboxes.conformance.network import Loopback
from sandboxes.docker.client import labels, leftovers
from sandboxes.docker.images import BASE_IMAGE
from tests.images import bare_image, deep_image
from tests.projects import commit

pytestmark = pytest.mark.docker


@pytest.fixture(scope="session")
def bare(engine: docker.DockerClient) -> Iterator[str]:
    """An image with git and no Python."""
    name = bare_image(engine, "bare", "git")
    yield name
    engine.images.remove(name, force=True)


@pytest.fixture
def store(engine: docker.DockerClient, tmp_path: Path) -> Iterator[Path]:
    """A store whose images are gone after the test."""
    yield tmp_path / "store"
    remove_images(engine, tmp_path / "store")


@pytest.fixture
def provider(store: Path) -> Iterator[CommitProvider]:
    with CommitProvider(store, LIMITS) as provider:
        yield provider


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A program in shell whose test fails."""
    files = {"max.sh": "[ $1 -lt $2 ] && echo $1 || echo $2\n", "run-tests.sh": 'test "$(sh max.sh 3 5)" = 5\n'}
    return commit(tmp_path / "checkout", files)


def images_of(engine: docker.DockerClient, store: Path) -> list[Any]:
    run = (store / "commit" / "run").read_text()
    return engine.images.list(filters={"label": f"ramify.run={run}"})


def remove_images(engine: docker.DockerClient, store: Path) -> None:
    if (store / "commit" / "run").exists():
        for image in images_of(engine, store):
            for tag in image.tags:
                engine.images.remove(tag, force=True)


class TestContract(SandboxContract):
    @pytest.fixture(scope="class")
    @classmethod
    def reopen(
        cls, engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Callable[[], Provider]]:
        store = tmp_path_factory.mktemp("commit") / "store"
        yield lambda: CommitProvider(store, LIMITS)
        remove_images(engine, store)

    @pytest.fixture(scope="class")
    @classmethod
    def workspace(cls, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
        return Workspace(path=sample(tmp_path_factory.mktemp("here") / "checkout"))


class TestBeyondTheCore(Limited, Loopback, Links, Unprivileged):
    """It is no exact tier, but limits and confinement hold."""

    reopen = TestContract.reopen
    workspace = TestContract.workspace


class TestWithoutPython:
    def test_the_exit_code_of_the_tests_guides_a_repair(
        self, provider: CommitProvider, bare: str, checkout: Path
    ) -> None:
        task = Task("max", "max.sh prints the smaller", Workspace(path=checkout, image=bare), "sh run-tests.sh")
        base = provider.create(task.workspace)
        baseline = find_baseline(provider, task, base)
        assert (baseline.adapter, baseline.exit_code, len(baseline.failures)) == ("exit-code", 1, 1)
        with provider.at(base) as box:
            box.write("max.sh", box.read("max.sh").replace(b"-lt", b"-gt"))
            fixed = box.snapshot()
        report = Measurer(provider, task, base, baseline).measure(fixed)
        assert (report.valid, list(report.outcomes.values())) == (True, [Outcome.PASSED])
        patched, why = apply_patch(provider, base, provider.diff(base, fixed))
        assert patched is not None, why
        assert patched.digest == fixed.digest

    def test_a_patch_is_applied_where_there_is_no_git_either(
        self, engine: docker.DockerClient, provider: CommitProvider, checkout: Path
    ) -> None:
        image = bare_image(engine, "gitless")
        try:
            (checkout / "run-tests.sh").chmod(0o755)
            base = provider.create(Workspace(path=checkout, image=image))
            with provider.at(base) as box:
                box.write("max.sh", b"echo $2\n", executable=True)
                box.write("new/file.sh", b"x\n")
                box.remove("run-tests.sh")
                edited = box.snapshot()
            patched, why = apply_patch(provider, base, provider.diff(base, edited))
            assert patched is not None, why
            assert patched.digest == edited.digest
            assert apply_patch(provider, edited, provider.diff(base, edited))[0] is None
        finally:
            engine.images.remove(image, force=True)

    def test_tests_that_a_state_rewrote_are_put_back(self, provider: CommitProvider, bare: str, checkout: Path) -> None:
        base = provider.create(Workspace(path=checkout, image=bare))
        with provider.at(base) as box:
            box.write("run-tests.sh", b"exit 0\n")
            cheated = box.snapshot()
        with provider.scratch(cheated, base) as box:
            assert sh(box, "sh run-tests.sh").exit_code == 0
        with provider.scratch(cheated, base, ["run-tests.sh"]) as box:
            assert sh(box, "sh run-tests.sh").exit_code == 1

    def test_an_image_without_a_shell_is_refused_by_a_sentence_that_says_so(
        self, engine: docker.DockerClient, provider: CommitProvider, checkout: Path
    ) -> None:
        name = f"ramify-test-empty-{os.getpid()}"
        engine.api.import_image_from_data(b"\0" * 10240, repository=name, tag="latest")
        try:
            with pytest.raises(SandboxUnavailable, match="no /bin/sh"):
                provider.create(Workspace(path=checkout, image=f"{name}:latest", setup=("true",)))
        finally:
            engine.images.remove(f"{name}:latest", force=True)

    def test_docker_falls_back_to_it_and_says_why(
        self, store: Path, bare: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("provider", "images"):
            monkeypatch.setattr(f"sandboxes.docker.{module}.BASE_IMAGE", "ramify-absent:latest")
        settings = load(overrides=["sandbox.kind=docker", f"sandbox.image={bare}"])
        provider = make_provider(settings, store)
        try:
            assert provider.tier.startswith("docker commit: SLOW")
            assert "NOT EXACT" in provider.tier
            assert "scripts/base-image" in provider.tier
            assert "scripts/base-image" in caplog.text
            assert not (store / "volume").exists()
        finally:
            provider.close()

    def test_it_can_be_asked_for_and_a_store_is_gone_on_with_by_what_made_it(self, store: Path, bare: str) -> None:
        forced = make_provider(load(overrides=["sandbox.kind=commit"]), store)
        forced.close()
        again = make_provider(Settings(), store)
        again.close()
        assert forced.tier == again.tier == CommitProvider(store).tier


class TestStates:
    def test_a_chain_of_states_goes_deeper_than_the_engine_has_layers(
        self,
        engine: docker.DockerClient,
        provider: CommitProvider,
        bare: str,
        checkout: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("sandboxes.commit.base_state.MAX_LAYERS", 2 * MAX_LAYERS)  # begin right below the bound
        deep = deep_image(engine, bare, MAX_LAYERS - 3)
        try:
            base = state = provider.create(Workspace(path=checkout, image=deep))
            for number in range(5):
                with provider.at(state) as box:
                    box.write(f"step{number}", str(number).encode())
                    state = box.snapshot()
            newest = engine.images.get(f"ramify-state:{state.id}")
            assert len(newest.attrs["RootFS"]["Layers"]) < 5
            assert "GREETING=hello" in newest.attrs["Config"]["Env"]
            assert len(provider.changes(base, state)) == 5
            with provider.at(state) as box:
                assert box.read("step0") == b"0"
                assert sh(box, "cat step2 step4; echo $GREETING; ls /layer3").stdout == b"24hello\n/layer3\n"
        finally:
            engine.images.remove(deep, force=True)

    def test_digests_tell_states_apart_by_what_is_outside_the_workspace_too(
        self, provider: CommitProvider, bare: str, checkout: Path
    ) -> None:
        base = provider.create(Workspace(path=checkout, image=bare))
        found = []
        for script in ("echo 1 > /opt", "echo 2 > /opt", "echo 1 > /opt; echo 3 > /tmp/gone; rm /tmp/gone", "ls /"):
            with provider.at(base) as box:
                assert sh(box, script).exit_code == 0
                found.append(box.snapshot().digest)
        assert found[0] == found[2] != found[1]
        assert found[3] == base.digest

    def test_states_are_the_same_whether_written_by_a_command_or_from_here(
        self, provider: CommitProvider, bare: str, checkout: Path
    ) -> None:
        base = provider.create(Workspace(path=checkout, image=bare))
        with provider.at(base) as box:
            assert sh(box, "mkdir -p new/deep && printf x > new/deep/file").exit_code == 0
            by_command = box.snapshot()
        with provider.at(base) as box:
            box.write("new/deep/file", b"x")
            from_here = box.snapshot()
        assert by_command.digest == from_here.digest != base.digest

    def test_a_path_that_an_image_declares_as_a_volume_is_part_of_the_state(
        self, engine: docker.DockerClient, provider: CommitProvider, bare: str, checkout: Path
    ) -> None:
        container = engine.containers.create(bare, ["true"], network_mode="none")
        name = f"ramify-test-volume-{os.getpid()}"
        container.commit(name, "latest", changes="VOLUME /data")
        container.remove()
        try:
            base = provider.create(Workspace(path=checkout, image=f"{name}:latest"))
            with provider.at(base) as box:
                assert sh(box, "mkdir -p /data; echo kept > /data/file").exit_code == 0
                kept = box.snapshot()
            with provider.at(kept) as box:
                assert box.read("/data/file") == b"kept\n"
        finally:
            engine.images.remove(f"{name}:latest", force=True)

    def test_discarding_every_state_leaves_no_image_and_keeps_the_one_they_were_made_of(
        self, engine: docker.DockerClient, provider: CommitProvider, store: Path, bare: str, checkout: Path
    ) -> None:
        base = provider.create(Workspace(path=checkout, image=bare))
        with provider.at(base) as box:
            box.write("a", b"a")
            child = box.snapshot()
        provider.discard(base)
        with provider.at(child) as box:
            assert box.read("a") == b"a"
        provider.discard(child)
        assert images_of(engine, store) == []
        assert engine.images.get(bare)


class TestHardening:
    def test_a_container_has_no_network_no_capability_and_nothing_of_this_machine(
        self, provider: CommitProvider, store: Path, engine: docker.DockerClient, bare: str, checkout: Path
    ) -> None:
        with provider.at(provider.create(Workspace(path=checkout, image=bare))):
            run = (store / "commit" / "run").read_text()
            [box] = engine.containers.list(all=True, filters={"label": f"ramify.run={run}"})
            host = box.attrs["HostConfig"]
            assert (host["NetworkMode"], host["CapDrop"], host["CapAdd"]) == ("none", ["ALL"], None)
            assert "no-new-privileges" in host["SecurityOpt"]
            assert (host["Memory"], host["MemorySwap"]) == (LIMITS.memory_bytes, LIMITS.memory_bytes)
            assert host["PidsLimit"] == LIMITS.pids
            assert host["LogConfig"]["Type"] == "none"
            assert (box.attrs["Mounts"], host["Privileged"]) == ([], False)

    def test_what_is_lent_to_set_up_is_in_no_state(
        self, provider: CommitProvider, bare: str, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "ca.pem").write_text("a certificate of this machine")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        setup = ("grep -q certificate $SSL_CERT_FILE", "echo $SSL_CERT_FILE > seen")
        with provider.at(provider.create(Workspace(path=checkout, image=bare, setup=setup))) as box:
            place = box.read("seen").decode().strip()
            assert sh(box, f'test -e {place} || test -n "$SSL_CERT_FILE" || ls -d {Path(place).parent}').exit_code != 0


@pytest.mark.parametrize(
    ("script", "timeout_s", "ended"), [("sleep 1; exit 3", 60, (3, False)), ("sleep 600", 1, (124, True))]
)
def test_a_caller_that_was_stopped_ends_no_command_that_was_in_time_and_the_container_ends_the_others(
    provider: CommitProvider,
    engine: docker.DockerClient,
    bare: str,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    timeout_s: float,
    ended: tuple[int, bool],
) -> None:
    monkeypatch.setattr("sandboxes.commit.command._GRACE_S", 0)
    with provider.at(provider.create(Workspace(path=checkout, image=bare))) as box:
        assert isinstance(box, Box)
        container = engine.containers.get(box.container)

        def clock() -> float:
            """Stands still until the command has ended, and a day later goes on."""
            container.reload()
            return 0.0 if container.status in ("created", "running") else 24 * 3600.0

        done = run(engine, box.container, Command(["sh", "-c", script], timeout_s, "/", {}), LIMITS, lambda: 0, clock)
    assert (done.exit_code, done.timed_out) == ended


class TestLeftovers:
    def test_closing_a_provider_leaves_no_container(
        self, provider: CommitProvider, store: Path, engine: docker.DockerClient, bare: str, checkout: Path
    ) -> None:
        base = provider.create(Workspace(path=checkout, image=bare))
        with provider.at(base) as box:
            sh(box, "echo x > /root/x")
            box.snapshot()
            provider.close()
        run = (store / "commit" / "run").read_text()
        assert engine.containers.list(all=True, filters={"label": f"ramify.run={run}"}, ignore_removed=True) == []

    def test_several_can_look_for_leftovers_at_once(self, engine: docker.DockerClient) -> None:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: list(leftovers(engine, lambda place: True)), range(16)))
        assert len(found) == 16

    def test_cleaning_takes_old_states_that_no_living_process_owns(
        self, provider: CommitProvider, store: Path, engine: docker.DockerClient, bare: str, checkout: Path
    ) -> None:
        base = provider.create(Workspace(path=checkout, image=bare))
        always = list(leftovers(engine, lambda place: place != store.resolve(), older_than_s=time.time()))
        assert f"image ramify-state:{base.id}" not in [left.name for left in always]
        assert images_of(engine, store)
        container = engine.containers.create(f"ramify-state:{base.id}", ["true"], network_mode="none")
        orphan = {"ramify": "1", "ramify.pid": "1", "ramify.host": "another/1", "ramify.created": "0"}
        container.commit("ramify-state", f"orphan-{os.getpid()}", conf={"Labels": orphan})
        container.remove()
        found = {left.name: left for left in leftovers(engine, lambda place: True, 10 * 365 * 24 * 3600)}
        assert found[f"image ramify-state:orphan-{os.getpid()}"].remove()
        assert f"image ramify-state:{base.id}" not in found

    def test_set_ups_go_sooner_where_that_is_asked_for(self, engine: docker.DockerClient) -> None:
        hours = {**labels("base"), "ramify.created": str(int(time.time()) - 2 * 3600)}
        made = [(f"ramify-{kind}", f"test-{os.getpid()}") for kind in ("setup", "environment", "image")]
        container = engine.containers.create(BASE_IMAGE, ["true"], network_mode="none", labels=labels("test"))
        for name in made:
            container.commit(*name, conf={"Labels": hours})
        container.remove()

        def going(built_before_s: float | None) -> set[str]:
            found = leftovers(engine, lambda place: True, 24 * 3600, built_before_s)
            return {left.name for left in found} & {f"image {':'.join(name)}" for name in made}

        assert going(None) == set()
        assert going(3600) == {f"image ramify-{kind}:test-{os.getpid()}" for kind in ("setup", "environment")}

    def test_a_state_whose_image_was_removed_is_missing(
        self, provider: CommitProvider, engine: docker.DockerClient, bare: str, checkout: Path
    ) -> None:
        base = provider.create(Workspace(path=checkout, image=bare))
        engine.images.remove(f"ramify-state:{base.id}", force=True)
        with pytest.raises(SnapshotMissing, match="gone"), provider.at(base):
            pass
        with pytest.raises(SnapshotMissing), provider.at(Snapshot("commit-0000000000000000", "")):
            pass


def test_a_new_file_that_no_patch_takes_is_left_out_of_it(
    engine: docker.DockerClient, checkout: Path, tmp_path: Path
) -> None:
    with CommitProvider(tmp_path / "store") as provider:
        base = provider.create(Workspace(path=checkout))
        with provider.at(base) as box:
            assert sh(box, "truncate -s 65M large && echo changed > max.sh").exit_code == 0
            left = box.snapshot()
        patch = provider.diff(base, left)
        assert (b"+changed" in patch, b"large" in patch) == (True, False)
    remove_images(engine, tmp_path / "store")


def test_a_killed_background_process_cannot_outlive_a_command_that_replaced_the_shell(
    provider: CommitProvider, bare: str, checkout: Path
) -> None:
    """The kernel ends what a command leaves, not a program of the image."""
    box: Sandbox
    with provider.at(provider.create(Workspace(path=checkout, image=bare))) as box:
        script = "(while :; do echo x >> /tmp/beat; sleep 0.05; done) & cp /bin/cat /bin/sh; sleep 0.3"
        assert sh(box, script).exit_code == 0
        beats = len(box.read("/tmp/beat"))
        time.sleep(0.3)
        assert len(box.read("/tmp/beat")) == beats > 0


def test_a_checkout_may_hold_a_link_that_climbs_out_of_it(provider: CommitProvider, bare: str, checkout: Path) -> None:
    (checkout / "up").symlink_to("../../elsewhere")
    (checkout / "same.sh").hardlink_to(checkout / "max.sh")
    with provider.at(provider.create(Workspace(path=checkout, image=bare))) as box:
        said = sh(box, "stat -c %N up; stat -c %h same.sh; stat -c %a .").stdout
        assert said == b"'up' -> '../../elsewhere'\n2\n755\n"


def test_no_socket_leads_out_of_a_container_that_has_no_network(
    engine: docker.DockerClient, provider: CommitProvider, checkout: Path
) -> None:
    tried = """
        import ctypes, socket, threading
        threading.Thread(target=print, args=("threads start",)).start()
        libc = ctypes.CDLL(None)
        print([libc.unshare(flag) for flag in (0x10000000, 0x40000000)])
        for family in (socket.AF_VSOCK, socket.AF_INET):
            try:
                print(socket.socket(family).family)
            except OSError as error:
                print(error.errno)
    """
    with provider.at(provider.create(Workspace(path=checkout))) as box:
        assert python(box, tried).stdout.split() == [b"threads", b"start", b"[-1,", b"-1]", b"1", b"2"]
