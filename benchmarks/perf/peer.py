"""The usual way: containers that are controlled by Docker's own commands, and git for going back.

Everything that is made is removed at the end of its block, and has the labels by which `ramify clean` recognises it.
"""

from __future__ import annotations

import io
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.perf.repositories import MOUNT, REPOSITORIES, Repository
from sandboxes.docker.client import labels
from sandboxes.docker.images import BASE_IMAGE
from sandboxes.forking.host_network_env import borrow
from sandboxes.forking.workspace_files import pack

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container


LABEL = "perf"
_GIT = {
    "GIT_AUTHOR_NAME": "Peer",
    "GIT_AUTHOR_EMAIL": "peer@example.org",
    "GIT_COMMITTER_NAME": "Peer",
    "GIT_COMMITTER_EMAIL": "peer@example.org",
}


def docker(*arguments: str, stdin: bytes = b"") -> bytes:
    """Run a docker command and return its output.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    return subprocess.run(["docker", *arguments], input=stdin, capture_output=True, check=True).stdout


@contextmanager
def container(client: DockerClient, name: str) -> Iterator[Container]:
    """Yield an idle container of an image, without a network, to run commands in."""
    running = client.containers.run(
        name, ["sleep", "infinity"], detach=True, init=True, network_mode="none", labels=labels(LABEL)
    )
    try:
        yield running
    finally:
        running.remove(force=True, v=True)


@contextmanager
def image(client: DockerClient, repository: Repository, path: Path) -> Iterator[str]:
    """Yield an image with a repository in `MOUNT`, the packages for its tests, and the byte code of a test run."""
    with TemporaryDirectory() as lent, _builder(client, repository, Path(lent)) as builder:
        for command in repository.environment:
            _run(builder, ["sh", "-c", command], borrow().env)
        _run(builder, ["mkdir", "-p", MOUNT])
        archive = io.BytesIO()
        pack(path, (), (), archive)
        builder.put_archive(MOUNT, archive.getvalue())
        tests = " ".join(other.test for other in REPOSITORIES.values() if other.project == repository.project)
        _run(builder, ["sh", "-c", f"cd {MOUNT} && python3 -m pytest -q {tests}"])
        name = committed(builder)
    try:
        yield name
    finally:
        removed(client, name)


@contextmanager
def _builder(client: DockerClient, repository: Repository, lent: Path) -> Iterator[Container]:
    """Yield a container with this machine's network and its settings for package indexes, as for our set-up
    commands."""
    from docker.types import Mount

    mounts = []  # not `volumes`, which would become part of the image
    for number, (place, text) in enumerate(borrow().files.items()):
        (lent / str(number)).write_text(text)
        mounts.append(Mount(place, str(lent / str(number)), type="bind", read_only=True))
    running = client.containers.run(
        BASE_IMAGE,
        ["sleep", "infinity"],
        detach=True,
        init=True,
        network_mode="host",
        working_dir="/",
        environment={**repository.env, **_GIT},
        mounts=mounts,
        labels=labels(LABEL),
    )
    try:
        yield running
    finally:
        running.remove(force=True, v=True)


def _run(box: Container, command: Sequence[str], env: dict[str, str] | None = None) -> None:
    done = box.exec_run(list(command), environment=env or {})
    if done.exit_code:
        raise RuntimeError(f"{command} ended with {done.exit_code}: {done.output!r}")


def committed(box: Container) -> str:
    """Commit a container as an image. Returns its name, by which `ramify clean` recognises it."""
    name = f"ramify-perf:{secrets.token_hex(8)}"
    box.commit(*name.split(":"), changes=[f"WORKDIR {MOUNT}"])
    return name


def removed(client: DockerClient, name: str) -> None:
    """Remove an image, but not its parents."""
    client.images.remove(name, force=True, noprune=True)


def put(box: Container, path: str, data: bytes) -> None:
    """Write a file of the repository, by `docker exec`."""
    docker("exec", "-i", "-w", MOUNT, str(box.id), "sh", "-c", f"cat > {path}", stdin=data)
