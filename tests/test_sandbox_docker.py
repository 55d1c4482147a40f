"""The provider in Docker keeps the contract, and what is particular to it: hardening, leftovers, images."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from agent.build.sandboxes import make_provider
from agent.measure import Outcome
from agent.measure.measurer import find_baseline
from agent.settings import Settings
from sandboxes import ImageMissing, Limits, Provider, SandboxUnavailable, Snapshot, Workspace
from sandboxes.conformance import LIMITS, ExactContract, sample
from sandboxes.docker import images
from sandboxes.docker.client import addresses, connect, labels, leftovers, sweep
from sandboxes.docker.provider import checked_provider, docker_provider, probe
from sandboxes.forking.provider import ForkingProvider
from tests.images import bare_image, remove_image
from tests.measuring import FIXED_PORT, Lab
from tests.registry import registry

pytestmark = pytest.mark.docker


@pytest.fixture
def store(engine: docker.DockerClient, tmp_path: Path) -> Iterator[Path]:
    """A store whose volume is gone after the test."""
    yield tmp_path / "store"
    note = tmp_path / "store" / "volume"
    if note.exists():
        remove_volume(engine, note.read_text())


@pytest.fixture
def provider(store: Path) -> Iterator[ForkingProvider]:
    with docker_provider(store, limits=Limits(memory_bytes=512 << 20, pids=64)) as provider:
        yield provider


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    path = tmp_path / "checkout"
    path.mkdir()
    (path / "a.txt").write_text("as it was\n")
    return path


@pytest.fixture
def import_image(engine: docker.DockerClient) -> Iterator[Callable[..., str]]:
    """Makes an image that holds the given files and nothing else, for the length of a test."""
    made = []

    def make(**files: str) -> str:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name, text in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
        made.append(f"ramify-test-{len(made)}-{os.getpid()}:latest")
        name, tag = made[-1].split(":")
        engine.api.import_image_from_data(archive.getvalue(), repository=name, tag=tag)
        return made[-1]

    yield make
    for name in made:
        remove_volume(engine, f"ramify-base-{engine.images.get(name).id.partition(':')[2][:12]}")
        engine.images.remove(name)


def containers_of(engine: docker.DockerClient, store: Path) -> list[Any]:
    run = (store / "volume").read_text()
    return engine.containers.list(all=True, filters={"label": f"ramify.run={run}"}, ignore_removed=True)


def remove_volume(engine: docker.DockerClient, name: str) -> None:
    """Remove it, if it is there, once the containers that are going are gone."""

    def removed() -> bool:
        try:
            engine.api.remove_volume(name)
        except docker.errors.NotFound:
            return True
        except docker.errors.APIError:
            return False
        return True

    assert within(100, removed)


def within(seconds: float, claim: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


class TestContract(ExactContract):
    @pytest.fixture(scope="class")
    @classmethod
    def reopen(
        cls, engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Callable[[], Provider]]:
        store = tmp_path_factory.mktemp("contract") / "store"
        yield lambda: docker_provider(store, LIMITS)
        remove_volume(engine, (store / "volume").read_text())

    @pytest.fixture(scope="class")
    @classmethod
    def workspace(cls, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
        return Workspace(path=sample(tmp_path_factory.mktemp("contract") / "checkout"))


class TestHardening:
    def test_a_container_has_no_network_no_capability_to_spare_and_nothing_of_this_machine(
        self, engine: docker.DockerClient, provider: ForkingProvider, store: Path, checkout: Path
    ) -> None:
        with provider.at(provider.create(Workspace(path=checkout))):
            [box] = containers_of(engine, store)
            host = box.attrs["HostConfig"]
            assert host["NetworkMode"] == "none"
            assert host["CapDrop"] == ["ALL"]
            assert sorted(name.removeprefix("CAP_") for name in host["CapAdd"]) == ["SETFCAP", "SETGID", "SETUID"]
            assert "no-new-privileges" in host["SecurityOpt"]
            assert host["ReadonlyRootfs"] is True
            assert host["Privileged"] is False
            assert {mount["Type"] for mount in box.attrs["Mounts"]} == {"volume"}
            assert [mount["RW"] for mount in box.attrs["Mounts"] if mount["Destination"] == "/base"] == [False]

    def test_a_container_is_limited_even_where_an_action_finds_a_way_around_its_own_limits(
        self, engine: docker.DockerClient, provider: ForkingProvider, store: Path, checkout: Path
    ) -> None:
        with provider.at(provider.create(Workspace(path=checkout))):
            [box] = containers_of(engine, store)
            host = box.attrs["HostConfig"]
            assert 512 << 20 <= host["Memory"] == host["MemorySwap"] <= 1 << 30
            assert 64 <= host["PidsLimit"] <= 128
            assert host["LogConfig"]["Type"] == "none"

    def test_the_volumes_of_other_states_and_the_image_are_out_of_an_actions_sight(
        self, provider: ForkingProvider, checkout: Path
    ) -> None:
        with provider.at(provider.create(Workspace(path=checkout))) as box:
            done = box.exec(["ls", "-d", "/base", "/states", "/environments"], timeout_s=100)
            assert done.stdout == b""
            assert done.stderr.count(b"No such file") == 3


def test_a_port_that_a_test_used_is_free_for_every_later_run(provider: ForkingProvider, tmp_path: Path) -> None:
    lab = Lab(provider, tmp_path, {"test_port.py": FIXED_PORT}, "python3 -m pytest -q -p no:cacheprovider")
    for _ in range(2):
        report = find_baseline(provider, lab.task, lab.base)
        assert (list(report.outcomes.values()), report.flaky) == ([Outcome.PASSED], ())


def test_a_file_that_is_larger_than_the_guests_memory_does_not_end_it(
    provider: ForkingProvider, checkout: Path
) -> None:
    base = provider.create(Workspace(path=checkout))
    with provider.at(base) as box:
        assert box.exec(["sh", "-c", "truncate -s 900M large && echo changed > a.txt"], timeout_s=100).exit_code == 0
        left = box.snapshot()
    patch = provider.diff(base, left)
    assert (b"+changed" in patch, b"large" in patch) == (True, False)


class TestLeftovers:
    def test_what_is_made_says_whose_it_is(
        self, engine: docker.DockerClient, provider: ForkingProvider, store: Path, checkout: Path
    ) -> None:
        with provider.at(provider.create(Workspace(path=checkout))):
            [box] = containers_of(engine, store)
            volume = engine.volumes.get((store / "volume").read_text())
            for marks in (box.labels, volume.attrs["Labels"]):
                assert marks["ramify"] == "1"
                assert marks["ramify.run"] == volume.name
                assert marks["ramify.pid"] == str(os.getpid())
                assert marks["ramify.host"].startswith(f"{socket.gethostname()}/")
                assert abs(float(marks["ramify.created"]) - time.time()) < 120

    def test_closing_a_provider_leaves_no_container(
        self, engine: docker.DockerClient, provider: ForkingProvider, store: Path, checkout: Path
    ) -> None:
        base = provider.create(Workspace(path=checkout))
        with provider.at(base), provider.at(base):
            assert len(containers_of(engine, store)) == 2
        provider.close()
        assert within(100, lambda: not containers_of(engine, store))

    def test_an_owner_killed_outright_leaves_no_container(
        self, engine: docker.DockerClient, store: Path, checkout: Path
    ) -> None:
        owner = start_owner(store, checkout)
        try:
            assert containers_of(engine, store)
        finally:
            owner.kill()
            owner.wait()
        assert owner.returncode == -signal.SIGKILL
        assert within(100, lambda: not containers_of(engine, store))

    def test_states_of_an_owner_killed_outright_can_be_used_again(self, store: Path, checkout: Path) -> None:
        owner = start_owner(store, checkout)
        owner.kill()
        owner.wait()
        snapshot = (store / "snapshot").read_text().split()
        with docker_provider(store) as again, again.at(Snapshot(*snapshot)) as box:
            assert box.read("a.txt") == b"as it was\n"

    def test_a_container_of_a_dead_process_is_swept_and_one_of_a_living_or_distant_process_is_not(
        self, engine: docker.DockerClient
    ) -> None:
        marks = labels("ramify-test")
        ours = engine.containers.create(images.BASE_IMAGE, ["true"], labels=marks)
        stale = engine.containers.create(images.BASE_IMAGE, ["true"], labels={**marks, "ramify.pid": dead_process()})
        elsewhere = {**marks, "ramify.pid": dead_process(), "ramify.host": "another/1"}
        theirs = engine.containers.create(images.BASE_IMAGE, ["true"], labels=elsewhere)
        try:
            sweep(engine)  # or that of a provider which another test has just made, and which may not have ended
            assert within(100, lambda: not exists(engine.containers.get, stale.id))
            assert exists(engine.containers.get, ours.id)
            assert exists(engine.containers.get, theirs.id)
        finally:
            ours.remove(force=True)
            theirs.remove(force=True)

    def test_cleaning_takes_old_unused_volumes_of_ours_and_nothing_else(self, engine: docker.DockerClient) -> None:
        long_ago = {**labels("ramify-test"), "ramify.created": "0"}
        gone = {**long_ago, "ramify.pid": dead_process()}
        volumes = {
            "stale": engine.volumes.create(labels=gone),
            "young": engine.volumes.create(labels={**gone, "ramify.created": str(int(time.time()))}),
            "owned": engine.volumes.create(labels=long_ago),
            "foreign": engine.volumes.create(labels={"ramify.created": "0"}),
            "mounted": engine.volumes.create(labels=gone),
        }
        names = {volume.name for volume in volumes.values()}
        user = engine.containers.create(images.BASE_IMAGE, ["true"], volumes=[f"{volumes['mounted'].name}:/mnt"])
        try:
            found = leftovers(engine, lambda store: True, 10 * 365 * 24 * 3600)
            going = {left.name: left for left in found if left.name.removeprefix("volume ") in names}
            assert set(going) == {f"volume {volumes[name].name}" for name in ("stale", "mounted")}
            assert {left.remove() for left in going.values()} == {True, False}
            left = {name for name, volume in volumes.items() if exists(engine.volumes.get, volume.name)}
            assert left == {"young", "owned", "foreign", "mounted"}
        finally:
            user.remove(force=True)
            for volume in volumes.values():
                remove_volume(engine, volume.name)

    def test_cleaning_takes_only_what_this_user_and_state_directory_made_unless_all_is_asked_for(
        self, engine: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone = {"ramify.pid": dead_process()}
        own = labels("ramify-test", tmp_path / "run" / "store") | gone
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
        another = labels("ramify-test", tmp_path / "run" / "store") | gone
        monkeypatch.undo()
        unnamed = {name: value for name, value in another.items() if name != "ramify.user"}
        made = {engine.volumes.create(labels=marks).name for marks in (another, unnamed)}
        mine = engine.volumes.create(labels=own).name
        try:
            for all_users, expected in ((False, {mine}), (True, {mine, *made})):
                found = [*leftovers(engine, lambda store: False, 10 * 365 * 24 * 3600, all_users=all_users)]
                stores = {left.name.removeprefix("volume "): left.store for left in found}
                assert stores.keys() & {mine, *made} == expected
            assert stores[mine] == tmp_path / "run" / "store"
        finally:
            for volume in (mine, *made):
                remove_volume(engine, volume)

    def test_states_go_when_their_store_is_not_wanted_and_their_owner_is_gone(
        self, engine: docker.DockerClient, tmp_path: Path
    ) -> None:
        made = {}
        for name, pid in (("deleted", dead_process()), ("kept", dead_process()), ("owned", str(os.getpid()))):
            marks = {**labels("ramify-test", tmp_path / name), "ramify.pid": pid}
            made[engine.volumes.create(labels=marks).name] = name
        try:
            found = leftovers(engine, lambda store: store.name == "kept", 10 * 365 * 24 * 3600)
            going = [left for left in found if left.name.removeprefix("volume ") in made]
            assert [made[left.name.removeprefix("volume ")] for left in going] == ["deleted"]
            assert going[0].remove()
            assert not exists(engine.volumes.get, going[0].name.removeprefix("volume "))
        finally:
            for volume in made:
                remove_volume(engine, volume)


class TestImages:
    def test_an_image_that_is_nowhere_is_named_together_with_the_remedy(
        self, provider: ForkingProvider, checkout: Path
    ) -> None:
        with registry() as server:
            server.missing = True
            workspace = Workspace(path=checkout, image=server.name("no/such-image"))
            with pytest.raises(ImageMissing, match=r"localhost:\d+/no/such-image:latest.*scripts/base-image"):
                provider.create(workspace)

    def test_an_image_needs_a_shell_and_no_python(
        self, engine: docker.DockerClient, store: Path, checkout: Path, tmp_path: Path
    ) -> None:
        image = bare_image(engine, "pythonless")
        try:
            with checked_provider(store, LIMITS, image) as provider:
                base = provider.create(Workspace(path=checkout, image=image, byte_code=True))
                with provider.at(base) as box:
                    assert box.exec(["python3", "-c", ""], timeout_s=100).exit_code == 127
                    assert box.exec(["sh", "-c", "echo $GREETING > a.txt"], timeout_s=100).exit_code == 0
                    assert provider.diff(base, box.snapshot()).endswith(b"-as it was\n+hello\n")
        finally:
            remove_image(engine, image)

    def test_an_image_without_a_shell_is_refused_by_a_sentence_that_says_so(
        self, import_image: Callable[..., str], store: Path
    ) -> None:
        with pytest.raises(SandboxUnavailable, match=r"/bin/sh: No such file"):
            checked_provider(store, LIMITS, import_image(**{"usr/README": "no programs at all"}))

    def test_without_our_own_image_no_other_is_trusted_in_its_place(
        self, import_image: Callable[..., str], store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("provider", "images"):
            monkeypatch.setattr(f"sandboxes.docker.{module}.BASE_IMAGE", "ramify-absent:latest")
        with pytest.raises(SandboxUnavailable, match=r"ramify-absent:latest; make it with scripts/base-image"):
            checked_provider(store, LIMITS, import_image(**{"usr/README": "no programs at all"}))

    def test_a_root_file_system_whose_filling_was_cut_short_is_filled_again(
        self, engine: docker.DockerClient, import_image: Callable[..., str]
    ) -> None:
        image = engine.images.get(import_image(first="1", last="2"))
        name = f"ramify-base-{image.id.partition(':')[2][:12]}"
        engine.volumes.create(name, labels=labels("base"))
        assert images.base_volume(engine, image) == name
        listing = engine.containers.run(
            images.BASE_IMAGE, ["ls", "/mnt/rootfs"], volumes=[f"{name}:/mnt"], remove=True, network_mode="none"
        )
        assert {b"first", b"last"} <= set(listing.split())

    def test_a_repository_that_comes_with_the_image_is_the_workspace(self, provider: ForkingProvider) -> None:
        base = provider.create(Workspace(mount="/etc"))
        with provider.at(base) as box:
            assert box.workdir == "/etc"
            assert box.read("debian_version")
            box.remove("debian_version")
            assert [change.path for change in provider.changes(base, box.snapshot())] == ["debian_version"]

    def test_of_a_repository_only_what_belongs_to_others_is_given_away(self, provider: ForkingProvider) -> None:
        before = int(time.time())
        with provider.at(provider.create(Workspace(mount="/etc"))) as box:
            owners = box.exec(["stat", "-c", "%u:%g %Z", "shadow", "debian_version"], timeout_s=100)
        given, left = (line.split() for line in owners.stdout.decode().splitlines())
        assert (given[0], left[0]) == ("0:0", "0:0")
        assert int(left[1]) < before <= int(given[1])

    def test_pip_installs_into_the_python_of_our_own_image(self, provider: ForkingProvider, checkout: Path) -> None:
        with provider.at(provider.create(Workspace(path=checkout))) as box:
            said = box.exec(["python3", "-m", "pip", "install", "--no-index", "nothing-of-this-name"], timeout_s=60)
        assert b"No matching distribution" in said.stderr + said.stdout

    def test_a_workspace_that_the_image_lacks_is_refused_by_name(self, provider: ForkingProvider) -> None:
        with pytest.raises(SandboxUnavailable, match="/nowhere"):
            provider.create(Workspace(mount="/nowhere"))


@pytest.fixture
def dead_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = f"unix://{tmp_path}/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", address)
    return address


class TestWithoutAnEngine:
    def test_the_error_names_the_address_and_what_to_do(self, dead_engine: str, tmp_path: Path) -> None:
        with pytest.raises(SandboxUnavailable, match="DOCKER_HOST") as caught:
            docker_provider(tmp_path / "store")
        assert dead_engine in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_where_no_sandbox_works_the_reasons_of_all_are_told(self, dead_engine: str) -> None:
        with pytest.raises(SandboxUnavailable, match=r"no sandbox works here.*: .*/proc/store.*; docker: ") as caught:
            make_provider(Settings(), Path("/proc/store"))
        assert "/proc/store" not in str(caught.value).partition("; docker: ")[2], "each reason is told once"
        assert dead_engine in str(caught.value)

    def test_a_probe_gives_the_reason_instead_of_raising(self, dead_engine: str) -> None:
        assert dead_engine in probe()


_OWNER = """
import sys, time
from pathlib import Path
from sandboxes import Workspace
from sandboxes.conformance import LIMITS, sample
from sandboxes.docker.provider import docker_provider
store = Path(sys.argv[1])
provider = docker_provider(store)
base = provider.create(Workspace(path=Path(sys.argv[2])))
(store / "snapshot").write_text(f"{base.id} {base.digest}")
with provider.at(base) as box:
    print("leased", flush=True)
    box.exec(["sleep", "600"], timeout_s=600)
"""


def start_owner(store: Path, checkout: Path) -> subprocess.Popen[bytes]:
    """A process with a command running in a lease."""
    owner = subprocess.Popen([sys.executable, "-c", _OWNER, str(store), str(checkout)], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"leased\n"
    owner.stdout.close()
    return owner


def dead_process() -> str:
    ended = subprocess.Popen(["true"])
    ended.wait()
    return str(ended.pid)


def exists(get: Callable[[str], object], name: str) -> bool:
    try:
        get(name)
    except docker.errors.NotFound:
        return False
    return True


class TestAddresses:
    @pytest.fixture(autouse=True)
    def _unnamed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("DOCKER_HOST", raising=False)
        monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))

    def test_engines_are_looked_for_where_docker_and_podman_put_their_sockets(self, tmp_path: Path) -> None:
        assert addresses() == (
            "unix:///var/run/docker.sock",
            f"unix://{tmp_path}/run/docker.sock",
            f"unix://{tmp_path}/run/podman/podman.sock",
            "unix:///run/podman/podman.sock",
        )

    def test_an_engine_that_is_named_is_the_only_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
        assert addresses() == ("tcp://127.0.0.1:1",)

    def test_every_address_that_was_tried_is_in_the_error(self, dead_engine: str) -> None:
        with pytest.raises(SandboxUnavailable) as caught:
            connect()
        assert all(address in str(caught.value) for address in addresses())
