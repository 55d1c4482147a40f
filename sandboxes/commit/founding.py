"""The first state of a workspace: its image, what is copied in, what set-up commands make of it."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxes import Limits, SandboxUnavailable, Workspace
from sandboxes.commit.archives import directories, from_root
from sandboxes.commit.container import Box, leased, upwards
from sandboxes.commit.states import MAX_LAYERS, State, States, flatten
from sandboxes.docker.client import labels
from sandboxes.docker.images import BASE_IMAGE, environment_of, find, outward, plain_name
from sandboxes.forking.base_state import ENV, SETUP_DISK_BYTES
from sandboxes.forking.host_network_env import borrow
from sandboxes.forking.image_user import ROOT, account, activated
from sandboxes.forking.workspace_files import Repository, pack, repository
from sandboxes.forking.workspace_setup import give, listed, run_all, settled_in

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

__all__ = ["found"]

_LENT = "/.ramify-lent"
_SET_UP = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
_ENVIRONMENTS = "ramify-environment"
_SET_UPS = "ramify-setup"


def found(client: DockerClient, states: States, workspace: Workspace, limits: Limits) -> State:
    """The base state of a workspace.

    Raises:
        SetupFailed, SandboxUnavailable: as `sandboxes.Provider.create`.
    """
    name = workspace.image or BASE_IMAGE
    image = find(client, name)
    first = _first(client, states, image, workspace, limits)
    if workspace.environment:
        first = replace(first, image=_environment(client, states, first, workspace.environment, limits))
    with _prepared(client, states, first, limits, online=bool(workspace.setup)) as box:
        known = _copy_in(box, first, workspace, name)
        if workspace.setup:
            first = replace(first, image=_set_up(client, box, first, workspace.setup))
        else:
            return _settled(states, box, first, known)
    with _prepared(client, states, first, limits, online=False) as box:
        return _settled(states, box, first, known)


def _settled(states: States, box: Box, first: State, known: Repository) -> State:
    """The container's state as a base."""
    give(box, *first.owner)
    tree = box.files.tree(first.workdir)
    facts = replace(first, tree=tree, tracked=known.tracked or (), exclude=known.exclude)
    return states.new(box.container, facts, base=True)


def _set_up(client: DockerClient, box: Box, first: State, commands: Sequence[str]) -> str:
    """The image in which these commands were run on what the container holds, made now if it never was."""
    image = str(client.images.get(first.image).id)
    name = _named(_SET_UPS, image, first.workdir, sorted(box.files.tree(first.workdir).items()), commands, first.env)
    _make_once(client, name, box, commands, first)
    return name


def _make_once(client: DockerClient, name: str, box: Box, commands: Sequence[str], first: State) -> None:
    """Run commands in a container and make it the image of that name, unless there is one or another is at it."""
    from docker.errors import ImageNotFound

    with _alone(name):
        try:
            client.images.get(name)
        except ImageNotFound:
            _run_all(box, commands, first)
            repository_, _, tag = name.partition(":")
            client.api.commit(box.container, repository=repository_, tag=tag, conf={"Labels": labels("base")})


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Nobody else on this machine makes the image of that name meanwhile."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ramify", "locks")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / name.replace(":", "-")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _named(repository_: str, *parts: object) -> str:
    return f"{repository_}:{hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()}"


def _first(client: DockerClient, states: States, image: Image, workspace: Workspace, limits: Limits) -> State:
    """The image itself as a state that was never saved."""
    config = image.attrs["Config"]
    place = _plain(client, image)
    inside = str(config.get("WorkingDir") or "").rstrip("/") if workspace.path is None else ""
    first = State(
        id="", image=place, base="", workdir=workspace.mount or inside or "/workspace", user="0:0", env={}, tree={}
    )
    with leased(client, states, first, limits) as box:
        who = account(box.read, str(config.get("User") or "0"))
        env = who.at_home({**ENV, **environment_of(image), **workspace.env})
    asking = replace(first, user=who.numbers, env=env)
    with leased(client, states, asking, limits) as box:
        there = replace(asking, workdir=settled_in(box, workspace, asking.workdir))
        return replace(there, env={**activated(box, env), **workspace.env})


def _plain(client: DockerClient, image: Image) -> str:
    """A name of the image, or of one with the same files that has room for layers and declares no volumes: what is
    written to a volume is no part of a commit."""
    name = plain_name(str(image.id))
    if len(image.attrs["RootFS"]["Layers"]) > MAX_LAYERS - 10 or image.attrs["Config"].get("Volumes"):
        flatten(client, str(image.id), name, labels("base"))
        return name
    if not image.tags:  # the engine removes an image without a name together with the last that stands on it
        image.tag(*name.split(":"))
        return name
    return str(image.tags[0])


def _environment(client: DockerClient, states: States, first: State, commands: Sequence[str], limits: Limits) -> str:
    """The image in which these commands were run, made now if it never was."""
    name = _named(_ENVIRONMENTS, str(client.images.get(first.image).id), commands)
    with _prepared(client, states, replace(first, workdir="/"), limits, online=True) as box:
        _make_once(client, name, box, commands, first)
    return name


@contextmanager
def _prepared(client: DockerClient, states: States, state: State, limits: Limits, *, online: bool) -> Iterator[Box]:
    """A container in which set-up commands run: with a network, what installing takes, and room on the disk."""
    generous = replace(limits, disk_bytes=max(limits.disk_bytes, SETUP_DISK_BYTES))
    as_root = replace(state, user=ROOT.numbers)
    with leased(client, states, as_root, generous, outward(client) if online else "none", _SET_UP) as box:
        yield box


def _run_all(box: Box, commands: Sequence[str], first: State) -> None:
    if not commands:
        return
    lent = borrow(_LENT)
    env = {**lent.env, **({} if first.user == ROOT.numbers else {"HOME": "/root"})}
    box.files.put("/", _archive({path: text for path, text in lent.files.items() if path.startswith(_LENT)}))
    run_all(box, commands, env)
    box.remove(_LENT)


def _archive(texts: Mapping[str, str]) -> bytes:
    """Files that everybody may read, in a directory that everybody may empty."""
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
    """What is known of the repository, once it is in its place."""
    there = box.files.look(first.workdir)
    if workspace.path is None:
        if there is None or there.kind != "d":
            raise SandboxUnavailable(f"the image {image} has no {first.workdir}; say where its repository is")
        return listed(box)
    if there is not None:
        box.remove(first.workdir)
    box.files.put("/", directories((p for p in upwards(first.workdir) if box.files.look(p) is None), first.owner))
    known = repository(workspace.path)
    with tempfile.TemporaryFile() as file:
        pack(workspace.path, known.tracked or (), (), file, first.owner)
        file.seek(0)
        with from_root(file, first.workdir) as archive:
            box.files.put("/", archive)
    return known
