"""Makes the sandbox that the settings ask for, or the best one that works on this machine."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

from agent.measure.adapters.registry import OF_PYTHON, framework_of
from agent.settings import SandboxSettings, Settings
from agent.task import Task
from sandboxes import Provider, SandboxUnavailable

log = logging.getLogger(__name__)


def make_provider(settings: Settings, store: Path) -> Provider:
    """Make the sandbox that the settings ask for. `auto` is docker if an image is named, else this machine's own
    namespaces, else docker. If the store holds states, the sandbox that made them is used again.

    Raises:
        sandboxes.SandboxUnavailable: none works here; the message says why.
    """
    sandbox = settings.sandbox
    if sandbox.kind == "commit" or (store / "commit").is_dir():
        return _committed(sandbox, store)
    if sandbox.kind == "auto" and not sandbox.image:
        return _best(sandbox, store)
    if sandbox.kind in ("auto", "docker"):
        return _docker(sandbox, store)
    from sandboxes.namespace.provider import namespace_provider

    return namespace_provider(store, limits=sandbox.limits, paranoid=sandbox.paranoid)


def python_of(task: Task, store: Path) -> str:
    """Describe for people which Python runs the tests of a run, given the store of its states. Empty if no Python does,
    or if the test command itself says which."""
    if framework_of(task.framework, task.test_command) not in OF_PYTHON or re.search(
        r"/python[\d.]*\b", task.test_command
    ):
        return ""
    if (store / "volume").exists() or (store / "commit").exists() or task.workspace.path is None:
        return f"that of the image {task.workspace.image}" if task.workspace.image else "that of the base image"
    from sandboxes.namespace.pythons import pythons

    program = pythons(task.workspace.path, task.workspace.env)[0]
    own = program == Path(sys.executable)
    return f"{program}{' (of Ramify: no environment is active, and the checkout has no .venv)' if own else ''}"


def _best(settings: SandboxSettings, store: Path) -> Provider:
    """Make a sandbox of this machine's own namespaces, or of containers if those do not work."""
    from sandboxes.docker import provider as docker
    from sandboxes.namespace import provider as namespace

    try:
        return namespace.checked_provider(store, settings.limits, paranoid=settings.paranoid)
    except SandboxUnavailable as error:
        why_not_here = error
    if why_not_docker := docker.probe():
        message = f"no sandbox works here; `ramify doctor` says more: {why_not_here}; docker: {why_not_docker}"
        raise SandboxUnavailable(message) from why_not_here
    return _docker(settings, store)


def _docker(settings: SandboxSettings, store: Path) -> Provider:
    """Make a sandbox of containers with the guest, or without it if the guest does not run in that image or on that
    engine."""
    from sandboxes.docker.provider import checked_provider, docker_provider

    if (store / "volume").exists():
        return docker_provider(store, limits=settings.limits, paranoid=settings.paranoid)
    try:
        return checked_provider(store, settings.limits, settings.image, paranoid=settings.paranoid)
    except SandboxUnavailable as error:
        log.warning("states are kept by docker commit, which is slow: %s", error)
        return _committed(settings, store, why=str(error))


def _committed(settings: SandboxSettings, store: Path, why: str = "") -> Provider:
    from sandboxes.commit import CommitProvider

    if settings.paranoid:
        reason = f": {why}" if why else ""
        raise SandboxUnavailable(f"docker commit does not keep exact states, which paranoid requires{reason}")
    return CommitProvider(store, limits=settings.limits, why=why)
