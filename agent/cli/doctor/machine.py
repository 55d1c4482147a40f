"""Finds the facts that decide which sandboxes work on this machine."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandboxes import SandboxError, SandboxUnavailable, Workspace, commit
from sandboxes.docker import client as engine
from sandboxes.docker import images
from sandboxes.docker import provider as docker
from sandboxes.forking.provider import require_shell
from sandboxes.namespace import cgroups
from sandboxes.namespace import provider as namespace

SETTINGS = {
    "user.max_user_namespaces": ("0", "15000"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""Kernel settings that can forbid user namespaces, each with a value that forbids them and one that allows them."""
COMMIT_S = 600.0
"""The time limit of a command in the `commit` sandbox, in which each command starts a container."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts of a machine. Each `..._problem` is the reason why something does not work; empty if it works."""

    kernel: tuple[int, int] = (6, 8)
    linux: bool = True
    root: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    """The values of those `SETTINGS` that this kernel has."""
    filesystem: str = "ext4"
    """The type of the file system that holds the runs."""
    limited: frozenset[str] = frozenset(["memory", "pids"])
    """The resources that control groups of this user can limit."""
    namespace_problem: str = ""
    engine_problem: str = ""
    image_problem: str = ""
    """Why the base image is missing, if an engine answers."""
    guest_problem: str = ""
    """Why states cannot be forked in containers, if an engine answers and has the image."""
    commit_problem: str = ""
    """Why `commit` does not work; checked only if the guest has a problem."""


def look(runs: Path) -> Machine:
    """Find the facts of this machine, which takes some seconds. `runs`: an existing directory on the file system of the
    runs."""
    name = platform.release().split("-")[0].split(".")
    engine_problem, image_problem = _engine_problems()
    guest_problem = "" if engine_problem or image_problem else docker.probe()
    return Machine(
        kernel=(int(name[0]), int(name[1])) if sys.platform == "linux" else (0, 0),
        linux=sys.platform == "linux",
        root=os.geteuid() == 0,
        settings={key: path.read_text().strip() for key in SETTINGS if (path := _setting(key)).exists()},
        filesystem=_filesystem(runs),
        limited=cgroups.limited(),
        namespace_problem=namespace.probe(runs if os.access(runs, os.W_OK) else None),
        engine_problem=engine_problem,
        image_problem=image_problem,
        guest_problem=guest_problem,
        commit_problem=_commit_problem() if guest_problem else "",
    )


def _setting(key: str) -> Path:
    return Path("/proc/sys", key.replace(".", "/"))


def _filesystem(path: Path) -> str:
    """Return the type of the file system that holds a path."""
    filesystem, depth = "", -1
    mounts = Path("/proc/self/mountinfo")
    for line in mounts.read_text(errors="replace").splitlines() if mounts.exists() else ():
        target, kind = Path(line.split()[4]), line.partition(" - ")[2].split()[0]
        if path.resolve().is_relative_to(target) and len(target.parts) >= depth:
            filesystem, depth = kind, len(target.parts)
    return filesystem


def _engine_problems() -> tuple[str, str]:
    """Return why no engine answers, and why the engine has no base image; empty strings if there is no such problem."""
    try:
        client = engine.connect()
    except SandboxUnavailable as error:
        return str(error), ""
    try:
        with engine.translated():
            images.find(client, images.BASE_IMAGE)
    except SandboxError as error:
        return "", str(error)
    finally:
        client.close()
    return "", ""


def _commit_problem() -> str:
    with tempfile.TemporaryDirectory(prefix="ramify-probe-") as store:
        try:
            with commit.CommitProvider(Path(store)) as provider:
                require_shell(provider, Workspace(mount="/tmp"), timeout_s=COMMIT_S)  # noqa: S108  # of the image
        except SandboxError as error:
            return str(error)
    return ""
