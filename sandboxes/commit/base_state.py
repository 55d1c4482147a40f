"""Builds the base state of a workspace as an image: copies the workspace in and runs its set-up commands."""

from __future__ import annotations

import fcntl
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes import Limits, SandboxUnavailable, Workspace
from sandboxes.commit.archives import directories
from sandboxes.commit.container import Box, leased, upwards
from sandboxes.commit.states import MAX_LAYERS, State, States, flatten
from sandboxes.docker.client import labels
from sandboxes.docker.images import BASE_IMAGE, environment_of, find, outward, plain_name, workdir_of
from sandboxes.forking.base_state import ENV, content_key, setup_limits
from sandboxes.forking.host_network_env import borrow
from sandboxes.forking.image_user import ROOT, account, activated
from sandboxes.forking.workspace_files import Repository, pack, repository
from sandboxes.forking.workspace_setup import give, listed, run_all, workspace_folder

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image


_LENT = "/.ramify-lent"
_SET_UP = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
_ENVIRONMENTS = "ramify-environment"
_SET_UPS = "ramify-setup"


def build_base_state(client: DockerClient, states: States, workspace: Workspace, limits: Limits) -> State:
    """Build the base state of a workspace.

    Raises:
        SetupFailed, SandboxUnavailable: as `sandboxes.Provider.create`.
    """
    name = workspace.image or BASE_IMAGE
    image = find(client, name)
    first = _first(client, states, image, workspace, limits)
    if workspace.environment:
        first = replace(first, image=_environment(client, states, first, workspace.environment, limits))
    with _prepared(client, states, first, limits, online=bool(workspace.setup)) as box:
        repository_facts = _copy_in(box, first, workspace, name)
        if workspace.setup:
            first = replace(first, image=_set_up(client, box, first, workspace.setup))
        else:
            return _freeze_base(states, box, first, repository_facts)
    with _prepared(client, states, first, limits, online=False) as box:
        return _freeze_base(states, box, first, repository_facts)


def _freeze_base(states: States, box: Box, first: State, repository_facts: Repository) -> State:
    """Freeze the container into a base state."""
    give(box, *first.owner)
    tree = box.files.tree(first.workdir)
    facts = replace(first, tree=tree, tracked=repository_facts.tracked or (), exclude=repository_facts.exclude)
    return states.new(box.container, facts, base=True)


def _set_up(client: DockerClient, box: Box, first: State, commands: Sequence[str]) -> str:
    """Return the image of the container's content after these commands; build it if it does not exist."""
    image = str(client.images.get(first.image).id)
    key = content_key(image, first.workdir, sorted(box.files.tree(first.workdir).items()), commands, first.env)
    name = f"{_SET_UPS}:{key}"
    _make_once(client, name, box, commands, first)
    return name


def _make_once(client: DockerClient, name: str, box: Box, commands: Sequence[str], first: State) -> None:
    """Run commands in a container and commit it as image `name`, unless that exists. One process builds at a time."""
    from docker.errors import ImageNotFound

    with _locked(name):
        try:
            client.images.get(name)
        except ImageNotFound:
            _run_all(box, commands, first)
            repository_, _, tag = name.partition(":")
            client.api.commit(box.container, repository=repository_, tag=tag, conf={"Labels": labels("base")})


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Lock the image name against other processes on this machine."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ramify", "locks")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / name.replace(":", "-")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _first(client: DockerClient, states: States, image: Image, workspace: Workspace, limits: Limits) -> State:
    """The image as an unsaved state, with its user, environment and working directory."""
    config = image.attrs["Config"]
    name, workdir = _plain(client, image), workdir_of(image, workspace)
    first = State(id="", image=name, base="", workdir=workdir, user="0:0", env={}, tree={})
    with leased(client, states, first, limits) as box:
        user = account(box.read, str(config.get("User") or "0"))
        env = user.at_home({**ENV, **environment_of(image), **workspace.env})
    first = replace(first, user=user.numbers, env=env)
    with leased(client, states, first, limits) as box:
        return replace(
            first, workdir=workspace_folder(box, workspace, workdir), env={**activated(box, env), **workspace.env}
        )


def _plain(client: DockerClient, image: Image) -> str:
    """A name for the image, or for a flattened copy if it has too many layers or declares volumes.

    A commit does not include what is written to a volume.
    """
    name = plain_name(str(image.id))
    if len(image.attrs["RootFS"]["Layers"]) > MAX_LAYERS - 10 or image.attrs["Config"].get("Volumes"):
        flatten(client, str(image.id), name, labels("base"))
        return name
    if not image.tags:  # the engine removes an untagged image together with the last image built on it
        image.tag(*name.split(":"))
        return name
    return str(image.tags[0])


def _environment(client: DockerClient, states: States, first: State, commands: Sequence[str], limits: Limits) -> str:
    """Return the image of the environment that these commands build; build it if it does not exist."""
    name = f"{_ENVIRONMENTS}:{content_key(str(client.images.get(first.image).id), commands)}"
    with _prepared(client, states, replace(first, workdir="/"), limits, online=True) as box:
        _make_once(client, name, box, commands, first)
    return name


@contextmanager
def _prepared(client: DockerClient, states: States, state: State, limits: Limits, *, online: bool) -> Iterator[Box]:
    """Lease a container for set-up commands: as root, with more disk space and the capabilities for installing."""
    as_root = replace(state, user=ROOT.numbers)
    with leased(client, states, as_root, setup_limits(limits), outward(client) if online else "none", _SET_UP) as box:
        yield box


def _run_all(box: Box, commands: Sequence[str], first: State) -> None:
    if not commands:
        return
    borrowed = borrow(_LENT)
    env = {**borrowed.env, **({} if first.user == ROOT.numbers else {"HOME": "/root"})}
    box.files.put("/", _archive({path: text for path, text in borrowed.files.items() if path.startswith(_LENT)}))
    run_all(box, commands, env)
    box.remove(_LENT)


def _archive(texts: Mapping[str, str]) -> bytes:
    """A tar of world-readable files in a directory that every user may empty."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        folder = tarfile.TarInfo(_LENT.strip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o777
        tar.addfile(folder)
        for path, text in texts.items():
            data = text.encode()
            header = tarfile.TarInfo(path.strip("/"))
            header.size, header.mode = len(data), 0o644
            tar.addfile(header, io.BytesIO(data))
    return archive.getvalue()


def _copy_in(box: Box, first: State, workspace: Workspace, image: str) -> Repository:
    """Put the workspace in its place and return what git knows about its repository."""
    existing = box.files.look(first.workdir)
    if workspace.path is None:
        if existing is None or existing.kind != "d":
            raise SandboxUnavailable(f"the image {image} has no {first.workdir}; say where its repository is")
        return listed(box)
    if existing is not None:
        box.remove(first.workdir)
    box.files.put("/", directories((p for p in upwards(first.workdir) if box.files.look(p) is None), first.owner))
    repository_facts = repository(workspace.path)
    with tempfile.TemporaryFile() as file:
        pack(workspace.path, repository_facts.tracked or (), (), file, first.owner, first.workdir.strip("/"))
        file.seek(0)
        box.files.put("/", file)
    return repository_facts
