"""Makes the sandbox that the settings ask for, or the best that works on this machine."""

from __future__ import annotations

import logging
from pathlib import Path

from agent.settings import SandboxSettings, Settings
from sandboxes import Provider, SandboxUnavailable

__all__ = ["make_provider"]

log = logging.getLogger(__name__)


def make_provider(settings: Settings, store: Path) -> Provider:
    """The sandbox that the settings ask for; `auto` is docker if an image is named, else this machine's own namespaces,
    else docker. A store that holds states keeps the sandbox that made them.

    Raises:
        sandboxes.SandboxUnavailable: none works here; the message says why.
    """
    wanted = settings.sandbox
    if wanted.kind == "commit" or (store / "commit").is_dir():
        return _committed(wanted, store)
    if wanted.kind == "auto" and not wanted.image:
        return _best(wanted, store)
    if wanted.kind in ("auto", "docker"):
        return _docker(wanted, store)
    from sandboxes.namespace.provider import NamespaceProvider

    return NamespaceProvider(store, limits=wanted.limits, paranoid=wanted.paranoid)


def _best(wanted: SandboxSettings, store: Path) -> Provider:
    """This machine's own namespaces, or containers if those do not work."""
    from sandboxes.docker import provider as docker
    from sandboxes.namespace import provider as namespace

    try:
        return namespace.proven(store, wanted.limits, paranoid=wanted.paranoid)
    except SandboxUnavailable as error:
        why_not_here = error
    if why_not_docker := docker.probe():
        said = f"no sandbox works here, `ramify doctor` says what to change: {why_not_here}; docker: {why_not_docker}"
        raise SandboxUnavailable(said) from why_not_here
    return _docker(wanted, store)


def _docker(wanted: SandboxSettings, store: Path) -> Provider:
    """Containers with the guest; without it, if the guest does not run in that image or on that engine."""
    from sandboxes.docker.provider import DockerProvider, proven

    if (store / "volume").exists():
        return DockerProvider(store, limits=wanted.limits, paranoid=wanted.paranoid)
    try:
        return proven(store, wanted.limits, wanted.image, paranoid=wanted.paranoid)
    except SandboxUnavailable as error:
        log.warning("states are kept by docker commit, which is slow: %s", error)
        return _committed(wanted, store, why=str(error))


def _committed(wanted: SandboxSettings, store: Path, why: str = "") -> Provider:
    from sandboxes.commit import CommitProvider

    if wanted.paranoid:
        because = f": {why}" if why else ""
        raise SandboxUnavailable(f"docker commit keeps no exact states, and paranoid checks that they are{because}")
    return CommitProvider(store, limits=wanted.limits, why=why)
