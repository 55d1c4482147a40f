"""Checks what this machine can do, and what to change if something does not work."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.cli.doctor.machine import SETTINGS, Machine, look
from agent.run.paths import runs_dir
from sandboxes.docker.images import BASE_IMAGE
from sandboxes.git.command import version

_NO_UPPER = ("overlay", "nfs", "nfs4", "fuse", "fuse.sshfs", "vfat", "ecryptfs", "9p")
"""File systems that cannot be the upper layer of an overlay."""
_SLOW = "commit, which is slow and not exact"
_CONTAINER_REMEDY = (
    "use Docker; or, if this is a container, start it with "
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
)
_GUEST_REMEDY = "allow user namespaces in containers (a seccomp and AppArmor policy of your engine may forbid them)"

ROOM_BYTES = 2 << 30
"""The space that one action may use. If less is free, the report suggests a remedy."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    is_sandbox: bool = False


def examine() -> tuple[Finding, ...]:
    """Run all checks; some take seconds."""
    return (*sandboxes_of(look(_existing_part(runs_dir()))), _python(), _git(), _disk(), _keys())


def sandboxes_of(machine: Machine) -> Iterator[Finding]:
    """Yield which kinds of sandbox work on a machine, why others do not, and what to change for a better kind."""
    namespace = not machine.namespace_problem
    docker = not (machine.engine_problem or machine.image_problem or machine.guest_problem)
    commit = not machine.engine_problem and bool(machine.guest_problem) and not machine.commit_problem
    contained = "docker" if docker else _SLOW if commit else "none"
    first = "namespace" if namespace else contained
    with_image = f"{_SLOW}; not tried" if machine.image_problem else contained
    which = f"default sandbox: {first} ({with_image} when --image is given)"
    yield Finding("sandbox", first != "none", which, is_sandbox=True)
    yield _namespace(machine)
    yield _docker(machine)
    if not machine.engine_problem:
        yield _image(machine)
    if commit:
        yield Finding("commit", True, f"slow, and states are not exact; it is used because {machine.guest_problem}")


def _namespace(machine: Machine) -> Finding:
    if not machine.namespace_problem:
        weakness, remedy = _unlimited(machine)
        return Finding("namespace", True, f"user namespaces of this machine; exact states{weakness}", remedy)
    reason = machine.namespace_problem.partition("; ")[0]
    refused = _CONTAINER_REMEDY if reason.startswith("user namespaces are refused") else ""
    return Finding("namespace", False, reason, _namespace_remedy(machine) or refused or _file_system_remedy(machine))


def _unlimited(machine: Machine) -> tuple[str, str]:
    """Return which limits are weaker because this user has no control groups, and what to change."""
    names = {"memory": "memory", "pids": "processes"}
    unlimited = " and ".join(name for kind, name in names.items() if kind not in machine.limited)
    if not unlimited:
        return "", ""
    return (
        f", but {unlimited} limited only per process: no writable control group",
        "run as root, or with groups of your own: systemd-run --user --scope -p Delegate=yes ramify ...",
    )


def _namespace_remedy(machine: Machine) -> str:
    if not machine.linux:
        return "use Docker, in a virtual machine with Linux"
    if machine.kernel < (5, 11):
        release = ".".join(str(number) for number in machine.kernel)
        return f"Linux 5.11 or newer (this is {release}), or use Docker with --sandbox commit"
    for name, (bad, good) in SETTINGS.items():
        if machine.settings.get(name) == bad and (not machine.root or bad == "0"):
            return f"sudo sysctl -w {name}={good} (and in /etc/sysctl.d, to keep it), or use Docker"
    return ""


def _file_system_remedy(machine: Machine) -> str:
    if machine.filesystem in _NO_UPPER:
        return f"states cannot be on {machine.filesystem}: name a place on ext4, xfs or btrfs (--out, XDG_STATE_HOME)"
    return "use Docker"


def _docker(machine: Machine) -> Finding:
    if machine.engine_problem:
        reason = machine.engine_problem.partition("; ")[0]
        return Finding("docker", False, reason, _engine_remedy(reason))
    if machine.image_problem:
        return Finding("docker", False, f"an engine answers, but {BASE_IMAGE}, in which states are forked, is missing")
    if machine.guest_problem:
        reason, _, remedy = machine.guest_problem.partition("; ")
        return Finding("docker", False, reason, _namespace_remedy(machine) or remedy or _GUEST_REMEDY)
    slower = "" if machine.kernel >= (6, 5) else "; Linux 6.5 or newer mounts deep states faster"
    return Finding("docker", True, f"containers; exact states{slower}")


def _image(machine: Machine) -> Finding:
    """Check the image in which states are forked."""
    reason, _, remedy = machine.image_problem.partition("; ")
    return Finding("image", not reason, reason or BASE_IMAGE, remedy)


def _engine_remedy(reason: str) -> str:
    if "ermission denied" in reason:
        return "sudo usermod -aG docker $USER and log in again (this gives root access), or install rootless Docker"
    return "start one (scripts/start-docker, systemctl start docker), or name it in DOCKER_HOST"


def _python() -> Finding:
    return Finding("python", True, f"{platform.python_version()} ({sys.executable})")


def _git() -> Finding:
    path = shutil.which("git")
    if path is None:
        return Finding("git", False, "not found", "install git (Debian, Ubuntu: apt install git)")
    return Finding("git", True, f"{version()} ({path})")


def _disk() -> Finding:
    place = runs_dir()
    free = shutil.disk_usage(_existing_part(place)).free
    remedy = "" if free > ROOM_BYTES else "free some space, name another place with --out, or run: ramify clean"
    return Finding("disk", not remedy, f"{free / (1 << 30):.1f} GiB free for {place}", remedy)


def _existing_part(path: Path) -> Path:
    return next(part for part in (path, *path.parents) if part.exists())


def _keys() -> Finding:
    names = sorted(name for name, value in os.environ.items() if name.endswith("_API_KEY") and value)
    if names:
        return Finding("models", True, f"keys in the environment: {', '.join(names)}")
    remedy = "export ANTHROPIC_API_KEY=... (or another provider's); `mutate` and servers of your own need none"
    return Finding("models", False, "no key in the environment (*_API_KEY)", remedy)
