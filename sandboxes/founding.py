"""The first states: a workspace copied in, set-up commands run, shared environments built once."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sandboxes import Limits, SandboxError, SetupFailed, SnapshotMissing, Workspace
from sandboxes.borrow import borrow
from sandboxes.checkout import Repository, names, pack, repository
from sandboxes.fork import Fork
from sandboxes.frames import Guest, Upload
from sandboxes.launch import Layout

__all__ = ["environment", "found", "variables"]

_ENV = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",  # an edit within a second of the last one would meet stale byte code
    "PYTHONHASHSEED": "0",
}
_SETUP_TIMEOUT_S = 3600.0
_SETUP_DISK_BYTES = 32 << 30
_LISTING_TIMEOUT_S = 120.0


def variables(layout: Layout, workspace: Workspace) -> dict[str, str]:
    """The environment of every action."""
    return {**_ENV, **layout.env, **workspace.env}


def found(
    guest: Guest, layout: Layout, workspace: Workspace, limits: Limits, environment: str | None
) -> dict[str, Any]:
    """The base state of a workspace: its id and digest.

    Raises:
        SetupFailed, StoreFull, SandboxError: as `sandboxes.Provider.create`.
    """
    known, layer, content = _import(guest, layout, workspace)
    founded, _ = guest.ask(
        "found",
        mounts=layout.mounts,
        layer=layer,
        workdir=layout.workdir,
        env=variables(layout, workspace),
        key=f"{layout.key} {content}",
        environment=environment,
    )
    with _prepared(guest, founded["id"], "store", limits, bool(workspace.setup)) as fork:
        if workspace.path is None:
            known = _listed(fork)
        _run_all(fork, workspace.setup)
        prepared = fork.freeze()
    return _settle(guest, founded["id"], prepared, "store", tracked=known.tracked, exclude=known.exclude)


def environment(guest: Guest, layout: Layout, workspace: Workspace, limits: Limits) -> str:
    """The name of the shared environment that the workspace's commands build, built now if it never was."""
    key = _key(layout.key, [target for target, _ in layout.mounts], workspace.environment)
    try:
        guest.ask("info", area="environments", id=key)
    except SnapshotMissing:
        env = variables(layout, workspace)
        founded, _ = guest.ask("found", area="environments", mounts=layout.mounts, workdir="/", env=env, key=layout.key)
        with _prepared(guest, founded["id"], "environments", limits, True) as fork:
            _run_all(fork, workspace.environment)
            prepared = fork.freeze()
        _settle(guest, founded["id"], prepared, "environments", **{"as": key})
    return key


@contextmanager
def _prepared(guest: Guest, state: str, area: str, limits: Limits, online: bool) -> Iterator[Fork]:
    """A fork in which set-up commands run: with what they may borrow, and room on the disk."""
    borrowed = borrow() if online else None
    generous = replace(limits, disk_bytes=max(limits.disk_bytes, _SETUP_DISK_BYTES))
    files = borrowed.files if borrowed else {}
    with Fork.lease(guest, "", generous, id=state, area=area, borrowed=files) as fork:
        yield fork


def _run_all(fork: Fork, commands: Sequence[str]) -> None:
    env = borrow().env if commands else {}
    for command in commands:
        done = fork.exec(["sh", "-c", command], timeout_s=_SETUP_TIMEOUT_S, env=env)
        if done.exit_code:
            tail = (done.stdout + done.stderr)[-4000:].decode(errors="replace")
            raise SetupFailed(f"`{command}` ended with exit code {done.exit_code}:\n{tail}")


def _import(guest: Guest, layout: Layout, workspace: Workspace) -> tuple[Repository, str | None, str]:
    """Copy the workspace in; what git knows of it, the layer that holds it, and a name of its content."""
    if workspace.path is None:
        return Repository(), None, ""
    known = repository(workspace.path)
    guest.send({"op": "import", "mounts": layout.mounts, "workdir": layout.workdir})
    try:
        with io.BufferedWriter(Upload(guest), 1 << 20) as stream:
            pack(workspace.path, known.tracked or (), layout.leave_out, stream)
    except (OSError, SandboxError):
        guest.close()
        raise
    header = guest.answer()
    return known, header["layer"], header["digest"]


def _listed(fork: Fork) -> Repository:
    """What git, run inside, says of a repository that came with the image."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "ls-files", "-z"]
    done = fork.exec(command, timeout_s=_LISTING_TIMEOUT_S)
    if done.exit_code or done.stdout_bytes > len(done.stdout):
        return Repository()
    try:
        exclude = fork.read(".git/info/exclude").decode("utf-8", "surrogateescape")
    except OSError:
        exclude = ""
    return Repository(names(done.stdout), exclude)


def _settle(guest: Guest, first: str, last: Mapping[str, Any], area: str, **fields: object) -> dict[str, Any]:
    """Make the last state a base, and drop the ones on the way to it."""
    settled, _ = guest.ask("settle", area=area, id=last["id"], **fields)
    for name in {first, last["id"]}:
        guest.ask("discard", area=area, id=name)
    return settled


def _key(*parts: object) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
