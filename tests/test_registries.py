"""Images are pulled from a real registry, through what stands before it; where docker-registry is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import docker
import pytest

from sandboxes import ImageMissing, RegistryBusy, RegistryDown
from sandboxes.docker.image_cleanup import here
from sandboxes.docker.images import find
from sandboxes.docker.pulls import PATIENCE_S, pull
from tests.images import bare_image
from tests.registries import Front, real_registry

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def behind(engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A registry that holds `tiny`, which the engine has not."""
    with real_registry(tmp_path_factory.mktemp("registry")) as port:
        made = bare_image(engine, "registry")
        name = f"127.0.0.1:{port}/owner/tiny:latest"
        engine.images.get(made).tag(name)
        told = list(engine.api.push(name, stream=True, decode=True))
        assert not [line for line in told if "error" in line]
        for each in (made, name):
            engine.images.remove(each)
        yield port


@pytest.fixture
def front(behind: int, engine: docker.DockerClient) -> Iterator[Front]:
    with Front(behind) as server:
        yield server
    for image in engine.images.list():
        for name in (*image.tags, *image.attrs["RepoDigests"]):
            if name.startswith(f"127.0.0.1:{server.server_port}/"):
                with suppress(docker.errors.ImageNotFound):
                    engine.images.remove(name)


def called(front: Front, name: str = "owner/tiny:latest") -> str:
    return f"127.0.0.1:{front.server_port}/{name}"


def test_an_image_is_pulled_whole_and_then_not_asked_for_again(engine: docker.DockerClient, front: Front) -> None:
    image = find(engine, called(front))
    fetched = front.layers
    assert fetched >= 2
    assert find(engine, called(front)).id == image.id
    assert front.layers == fetched
    (digest,) = image.attrs["RepoDigests"]
    engine.images.remove(called(front))
    assert find(engine, digest).id == image.id
    assert front.layers > fetched


def test_a_rate_limit_is_waited_for_and_one_without_an_end_is_told(engine: docker.DockerClient, front: Front) -> None:
    front.refusals, pauses = 3, list[float]()
    pull(engine, called(front), pauses.append)
    assert here(engine, called(front))
    assert tuple(pauses) == PATIENCE_S[: len(pauses)] != ()
    engine.images.remove(called(front))
    front.refusals, pauses = 1_000, list[float]()
    with pytest.raises(RegistryBusy, match="pull rate limit"):
        pull(engine, called(front), pauses.append)
    assert tuple(pauses) == PATIENCE_S


@pytest.mark.parametrize("name", ["owner/tiny:other", "owner/nothing:latest", "owner/tiny@sha256:" + "0" * 64])
def test_what_the_registry_has_not_is_told_at_once(engine: docker.DockerClient, front: Front, name: str) -> None:
    pauses = list[float]()
    with pytest.raises(ImageMissing, match="cannot be pulled"):
        pull(engine, called(front, name), pauses.append)
    assert pauses == []


def test_a_registry_that_is_down_is_waited_for_and_gone_on_with_when_it_is_back(
    engine: docker.DockerClient, behind: int
) -> None:
    with Front(behind) as front:
        name, port = called(front), front.server_port
    pauses = list[float]()
    with pytest.raises(RegistryDown, match="continue when the registry and the network work again"):
        pull(engine, name, pauses.append)
    assert tuple(pauses) == PATIENCE_S
    with Front(behind, port):
        pull(engine, name, pauses.append)
    assert here(engine, name)
    assert tuple(pauses) == PATIENCE_S
    engine.images.remove(name)
