"""Room for a batch: images are pulled with patience and removed after use, and a disk is not filled to its end."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import docker
import pytest

from agent.budget import Stop
from agent.build.composition import start
from agent.settings import SandboxSettings, Settings
from agent.task import Task
from benchmarks.batch.batch import Attempt
from benchmarks.batch.free_space import shortage
from benchmarks.batch.image_cleanup import Pruner
from sandboxes import (
    ImageMissing,
    PullLeft,
    RegistryBusy,
    RegistryDown,
    SandboxError,
    SandboxUnavailable,
    Workspace,
)
from sandboxes.docker.client import translated
from sandboxes.docker.image_cleanup import here
from sandboxes.docker.images import base_volume_name, find
from sandboxes.docker.pulls import AT_ONCE, PATIENCE_S, log, pull, until
from tests.instances import bare_instance
from tests.registry import Engine, Registry, registry
from tests.test_bench_batch import halted, result, states


@pytest.fixture
def server(engine: docker.DockerClient) -> Iterator[Registry]:
    with registry() as server:
        yield server
        mine = f"localhost:{server.server_port}/"
        images = engine.api.images()  # one request: other tests remove some meanwhile
        for tag in [tag for image in images for tag in image["RepoTags"] or () if tag.startswith(mine)]:
            engine.images.remove(tag, force=True)


@pytest.mark.docker
class TestPulling:
    def test_a_busy_registry_is_left_alone_for_longer_and_longer(self, engine, server) -> None:
        server.refusals, pauses = 3, []
        pull(engine, server.name(), pauses.append)
        assert here(engine, server.name())
        assert pauses
        assert tuple(pauses) == PATIENCE_S[: len(pauses)]

    def test_a_registry_that_fails_for_now_is_asked_again(self, engine, server) -> None:
        server.refusals, server.refused_with, pauses = 3, 503, []
        pull(engine, server.name(), pauses.append)
        assert here(engine, server.name())
        assert pauses

    def test_patience_has_an_end_that_says_what_to_do(self, engine, server) -> None:
        server.refusals, pauses = 1_000, []
        with pytest.raises(RegistryBusy, match=r"localhost:.*pull rate limit.*`docker login` raises its limit"):
            pull(engine, server.name(), pauses.append)
        assert tuple(pauses) == PATIENCE_S

    def test_what_the_registry_lacks_is_not_asked_for_again(self, engine, server) -> None:
        server.missing = True
        with pytest.raises(Exception, match=r"cannot be pulled .*load or pull it with docker"):
            find(engine, server.name())

    def test_who_is_interrupted_waits_for_no_registry(self, engine, server, tmp_path) -> None:
        server.refusals = 1_000
        task = Task("x", "x", Workspace(image=server.name()), "true")
        settings = Settings(sandbox=SandboxSettings(image=server.name()))
        with stopped_once_waiting() as over:
            found = start(task, settings, tmp_path / "run", cancel=over)
        assert (found.status, found.stop, found.nodes) == ("no_patch", Stop.INTERRUPTED, 0)

    def test_an_image_that_several_want_is_pulled_once_and_few_are_pulled_at_the_same_time(
        self, engine, server
    ) -> None:
        asked = []
        for number in range(2):  # an engine asks more for the first
            pull(engine, server.name(f"first{number}"))
            asked.append(server.asked)
        server.crowded.clear()
        server.crowd, server.lingers_s = AT_ONCE, 0.3
        names = [server.name(f"image{number}") for number in range(AT_ONCE + 2)]
        threads = [threading.Thread(target=pull, args=(engine, name)) for name in names * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(here(engine, name) for name in names)
        assert server.asked - asked[1] == (asked[1] - asked[0]) * len(names)
        assert server.at_once <= AT_ONCE


class TestFailures:
    """Of pulls, told apart by what engines say of them."""

    @pytest.mark.parametrize(
        "said",
        [
            "received unexpected HTTP status: 502 Bad Gateway",
            "unexpected status code [manifests latest]: 503",
            "error parsing HTTP 500 response body",
            "read tcp 10.0.0.1:4242->10.0.0.2:443: read: connection reset by peer",
            'Get "https://registry/v2/": net/http: TLS handshake timeout',
            'Get "https://registry/v2/": dial tcp: i/o timeout',
            "unexpected EOF",
            'Get "https://registry/v2/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
        ],
    )
    def test_what_may_pass_is_waited_for_and_then_a_failure_of_its_own(self, said: str) -> None:
        with pytest.raises(RegistryDown, match=r"tiny:latest cannot be pulled for now .* even after 265 s of retries"):
            assert_pauses(PATIENCE_S, error(said))

    @pytest.mark.parametrize(
        "said",
        [
            "manifest for registry/tiny:latest not found: manifest unknown",
            "pull access denied for tiny, repository does not exist or may require 'docker login': denied",
            'Head "https://registry/v2/": unauthorized: incorrect username or password',
            'Get "https://regsitry/v2/": dial tcp: lookup regsitry: no such host',
            "no matching manifest for linux/arm64/v8 in the manifest list entries",
        ],
    )
    def test_what_stays_so_is_told_at_once(self, said: str) -> None:
        with pytest.raises(ImageMissing, match="cannot be pulled"):
            assert_pauses((), error(said))

    @pytest.mark.parametrize("fault", ["silent", "gone"])
    def test_an_engine_that_falls_silent_or_breaks_off_is_asked_again(self, fault: str) -> None:
        with pytest.raises(RegistryDown, match="the engine broke off, or timed out"):
            assert_pauses(PATIENCE_S, fault, silence_s=0.05)

    def test_an_engine_that_broke_off_once_goes_on(self) -> None:
        assert_pauses(PATIENCE_S[:1], "gone", b'{"status": "Pulled"}\n')

    def test_a_registry_that_fails_is_waited_for_once_whoever_wants_its_images(self) -> None:
        registry, pauses = unheard(), list[float]()
        failing, pulled = error("unexpected EOF"), b'{"status": "Pulled"}\n'
        with Engine(failing) as engine, closing(engine.client()) as client:
            for name in ("a", "b"):
                with pytest.raises(RegistryDown):
                    pull(client, f"{registry}/{name}", pauses.append)
            assert tuple(pauses) == PATIENCE_S
            engine.answers[:] = [pulled, failing]
            pull(client, f"{registry}/c", pauses.append)
            with pytest.raises(RegistryDown):
                pull(client, f"{registry}/d", pauses.append)
            assert tuple(pauses) == PATIENCE_S * 2

    def test_who_waits_for_a_registry_is_in_nobody_elses_way(self) -> None:
        waiting, over = threading.Barrier(2), threading.Event()
        down, failed = unheard(), list[str]()

        def wait(_: float) -> None:
            if not over.is_set():
                waiting.wait()
                over.wait()

        def want(name: str) -> None:
            with pytest.raises(RegistryDown):
                pull(client, name, wait)
            failed.append(name)

        with Engine(error("unexpected EOF")) as engine, closing(engine.client()) as client:
            threads = [threading.Thread(target=want, args=(f"{down}/{number}",)) for number in range(AT_ONCE + 1)]
            for thread in threads:
                thread.start()
            waiting.wait()
            with (
                pytest.raises(ImageMissing),
                Engine(error("manifest unknown")) as other,
                closing(other.client()) as its,
            ):
                pull(its, f"{unheard()}/tiny")
            over.set()
            for thread in threads:
                thread.join()
        assert len(failed) == AT_ONCE + 1

    def test_who_waited_for_a_registry_pulls_beside_the_others_that_did(self) -> None:
        registry, pulled = unheard(), b'{"status": "Pulled"}\n'
        three, two = threading.Barrier(3), threading.Barrier(2)
        answers = (*[(three, error("unexpected EOF"))] * 3, pulled, *[(two, pulled)] * 2)
        with Engine(*answers) as engine, closing(engine.client()) as client, ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda name: pull(client, f"{registry}/{name}", lambda _: None), "abc"))
        assert not two.broken

    def test_whoever_waits_for_a_registry_or_an_engine_need_not_wait_to_the_end(self) -> None:
        with Engine(error("unexpected EOF")) as engine, closing(engine.client()) as client:
            with stopped_once_waiting() as over, until(over), pytest.raises(PullLeft):
                pull(client, f"{unheard()}/tiny")
            with until(over), pytest.raises(PullLeft):
                pull(client, f"{unheard()}/tiny")
        over = threading.Event()
        with Engine("silent") as engine, closing(engine.client()) as client, ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: engine.asked.wait() and over.set())
            with until(over), pytest.raises(PullLeft):
                pull(client, f"{unheard()}/tiny")

    def test_whoever_wants_what_another_waits_for_need_not_wait_for_that_one(self) -> None:
        name, over, others = f"{unheard()}/tiny", threading.Event(), threading.Event()

        def want() -> None:
            with until(others), pytest.raises(PullLeft):
                pull(client, name)

        with Engine("silent") as engine, closing(engine.client()) as client, ThreadPoolExecutor(1) as pool:
            other = pool.submit(want)
            try:
                assert engine.asked.wait(100)
                over.set()
                with until(over), pytest.raises(PullLeft):
                    pull(client, name)
                assert not other.done()
            finally:
                others.set()
            other.result()

    @pytest.mark.parametrize("name", ["docker.io/Owner/Name:latest", "owner/../../containers", "http://x/y", "a b", ""])
    def test_an_image_that_can_have_no_such_name_is_its_own_fault(self, name: str) -> None:
        with (
            Engine(b"") as engine,
            closing(engine.client()) as client,
            pytest.raises(ImageMissing, match="no image can be called"),
            translated(),
        ):
            find(client, name)

    def test_an_image_whose_name_sounds_like_a_failure_is_none(self) -> None:
        with (
            Engine(error("manifest for unexpected/eof:latest not found")) as engine,
            closing(engine.client()) as client,
        ):
            pauses: list[float] = []
            with pytest.raises(ImageMissing, match="unexpected/eof:latest"):
                pull(client, "unexpected/eof:latest", pauses.append)
            assert pauses == []

    def test_a_slow_engine_is_no_fault_of_the_settings(self) -> None:
        with Engine("silent") as engine, closing(engine.client(0.05)) as client:
            with pytest.raises(SandboxError) as caught, translated():
                client.volumes.create("any")
            assert not isinstance(caught.value, SandboxUnavailable)


def assert_pauses(wanted: tuple[float, ...], *answers: bytes | str, silence_s: float = 60) -> None:
    """A pull that gets these answers leaves the registry alone for just so long, time after time."""
    pauses: list[float] = []
    with Engine(*answers) as engine, closing(engine.client()) as client:
        try:
            pull(client, f"{unheard()}/tiny:latest", pauses.append, silence_s)
        finally:
            assert tuple(pauses) == wanted


@contextmanager
def stopped_once_waiting() -> Iterator[threading.Event]:
    """An event that is set as soon as it is said that a registry is left alone."""
    over, listening = threading.Event(), logging.Handler()
    listening.emit = lambda record: over.set()  # type: ignore[method-assign]
    log.addHandler(listening)
    try:
        yield over
    finally:
        log.removeHandler(listening)


REGISTRIES = count()


def unheard() -> str:
    """A registry that no test has asked yet: this process knows of each whether it fails."""
    return f"registry{next(REGISTRIES)}.example"


def error(said: str) -> bytes:
    """The line by which an engine breaks off a pull."""
    return b'{"status": "Pulling from tiny"}\n%s\n' % json.dumps({"error": said}).encode()


def attempt(name: str, state: str) -> Attempt:
    return Attempt(name, state, "hidden")  # type: ignore[arg-type]  # a State


@pytest.mark.docker
class TestPruning:
    def test_an_image_goes_with_the_last_attempt_that_needs_it(self, engine, server, tmp_path) -> None:
        name = server.name()
        pruner = Pruner(engine, tmp_path, {"a": name, "b": name}, {"a": "e", "b": "e"})
        pull(engine, name)
        pruner.ended(bare_instance("a"), attempt("a", "done"))
        pruner.ended(bare_instance("b"), None)
        pruner.ended(bare_instance("b"), attempt("b", "infra"))
        assert here(engine, name)
        pruner.ended(bare_instance("b"), attempt("b", "limit"))
        assert not here(engine, name)

    def test_one_image_stays_while_others_that_share_its_layers_are_still_to_come(
        self, engine, server, tmp_path
    ) -> None:
        names = {each: server.name(each) for each in "abc"}
        pruner = Pruner(engine, tmp_path, names, {"a": "django 3.0", "b": "django 3.0", "c": "sympy 1.0"})
        left = []
        for each, name in names.items():
            pull(engine, name)
            pruner.ended(bare_instance(each), attempt(each, "done"))
            left.append([here(engine, other) for other in names.values()])
        assert left == [[True, False, False], [False, False, False], [False, False, False]]

    def test_what_was_made_of_it_goes_too_but_for_states_of_others(self, engine, server, tmp_path) -> None:
        name = server.name()
        (tmp_path / "out").mkdir()
        pruner = Pruner(engine, tmp_path / "out", {"a": name}, {"a": "e"})
        pull(engine, name)
        volume = engine.volumes.create(base_volume_name(engine.images.get(name).id))
        setup = derived(engine, name, f"ramify-setup:test-{server.server_port}")
        own = derived(engine, setup, f"ramify-state:test-{server.server_port}", tmp_path / "out" / "a" / "store")
        others = derived(engine, name, f"ramify-state:test-other-{server.server_port}", tmp_path / "elsewhere")
        pruner.ended(bare_instance("a"), attempt("a", "done"))
        assert [here(engine, each) for each in (name, setup, own, others)] == [False, False, False, True]
        assert volume.name not in [each.name for each in engine.volumes.list()]
        engine.images.remove(others)

    def test_an_image_that_was_there_before_stays_also_in_a_later_session(self, engine, server, tmp_path) -> None:
        before, pulled = server.name("before"), server.name("pulled")
        images = {"a": before, "b": pulled}
        pull(engine, before)
        Pruner(engine, tmp_path, images, {"a": "e", "b": "f"}).ended(bare_instance("a"), attempt("a", "done"))
        pull(engine, pulled)  # a kill comes before it can be removed
        Pruner(engine, tmp_path, images, {})
        assert [here(engine, name) for name in (before, pulled)] == [True, False]
        pull(engine, pulled)  # somebody wants it again
        Pruner(engine, tmp_path, images, {})
        assert here(engine, pulled)


def test_an_engine_that_removes_nothing_does_not_end_the_batch(tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text('{"x": false}')
    gone = docker.DockerClient(base_url="tcp://127.0.0.1:1", version="1.43")
    pruner = Pruner(gone, tmp_path, {"a": "x"}, {"a": "e"})
    pruner.ended(bare_instance("a"), attempt("a", "done"))
    gone.close()
    assert (tmp_path / "images.json").read_text().split() == ["{", '"x":', "false", "}"]


def derived(engine: docker.DockerClient, parent: str, name: str, store: Path | None = None) -> str:
    """An image that stands on another, as the states of that store do."""
    box = engine.containers.create(parent, ["none"])
    repository, _, tag = name.partition(":")
    labels = {"ramify": "1", **({"ramify.store": str(store)} if store else {})}
    engine.api.commit(box.id, repository=repository, tag=tag, conf={"Labels": labels})
    box.remove()
    return name


def test_a_disk_with_too_little_room_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    assert shortage([tmp_path], 0) == ""
    said = shortage([tmp_path], 1e9)
    assert said.startswith(f"the disk of {tmp_path} has ")
    assert " GiB free, and with less than 1e+09 GiB no instance is started" in said


def test_what_runs_when_a_disk_fills_up_ends_and_nothing_more_is_begun(tmp_path: Path) -> None:
    full = iter(["", "the disk is full"])
    begun, why = halted(tmp_path, "abc", lambda name, run: result(run), lacking=lambda: next(full))
    assert (begun, why, states(tmp_path)) == (["a"], "the disk is full", {"a": "done"})
    assert halted(tmp_path, "abc", lambda name, run: result(run)) == (["b", "c"], "")


def test_a_registry_that_is_busy_for_one_instance_is_not_asked_for_the_others(tmp_path: Path) -> None:
    def answer(name: str, run: Path):
        raise RegistryBusy("too many requests")

    begun, why = halted(tmp_path, "abc", answer)
    assert (begun, why, states(tmp_path)) == (["a"], "too many requests", {"a": "infra"})
    assert halted(tmp_path, "abc", lambda name, run: result(run, stop=Stop.NODES))[0] == ["a", "b", "c"]


def test_a_registry_that_is_down_ends_the_batch_once_two_instances_in_a_row_meet_it(tmp_path: Path) -> None:
    def answer(name: str, run: Path):
        if name in "acd":
            raise RegistryDown("its registry is down")
        return result(run)

    begun, why = halted(tmp_path, "abcdef", answer)
    assert (begun, why) == (["a", "b", "c", "d"], "its registry is down")
    assert states(tmp_path) == {"a": "infra", "b": "done", "c": "infra", "d": "infra"}
    assert halted(tmp_path, "abcdef", lambda name, run: result(run)) == (["a", "c", "d", "e", "f"], "")
