"""What this machine can do, and what to change where it cannot."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.places import runs_dir
from sandboxes import docker, namespace

__all__ = ["Finding", "examine"]

ROOM_BYTES = 2 << 30
"""Less free space than one action may add is worth a warning."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    is_sandbox: bool = False


def examine() -> tuple[Finding, ...]:
    """Look at everything; a probe may take some seconds."""
    return (*_sandboxes(), _python(), _git(), _disk(), _keys())


def _sandboxes() -> Iterator[Finding]:
    for name, why, tier in (
        ("namespace", namespace.probe(), "user namespaces of this machine; exact states, no Docker needed"),
        ("docker", docker.probe(), "containers; exact states"),
    ):
        reason, _, remedy = why.partition("; ")
        yield Finding(name, not why, reason or tier, remedy, is_sandbox=True)


def _python() -> Finding:
    return Finding("python", True, f"{platform.python_version()} ({sys.executable})")


def _git() -> Finding:
    path = shutil.which("git")
    if path is None:
        return Finding("git", False, "not found", "install git (Debian, Ubuntu: apt install git)")
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    return Finding("git", True, f"{said.stdout.strip().removeprefix('git version ')} ({path})")


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
    return Finding("models", False, "no key in the environment (*_API_KEY)", "not needed for --policy mutate")
