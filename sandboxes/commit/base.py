"""What the base of some states has outside the workspace: what their files there are compared with."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sandboxes import Limits
from sandboxes.commit.archives import Files
from sandboxes.commit.container import make, remove
from sandboxes.commit.manifest import Entry
from sandboxes.commit.states import States

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = ["Base"]


class Base:
    """One such base, read as it is asked for from a container that never runs. Thread-safe."""

    def __init__(self, client: DockerClient, states: States, base: str, limits: Limits) -> None:
        self._client, self._states, self._name, self._limits = client, states, base, limits
        self._lock = threading.Lock()
        self._container = ""
        self._known: dict[str, Entry | None] = {}

    def entry(self, path: str) -> Entry | None:
        """What it has at an absolute path."""
        with self._lock:
            if path not in self._known:
                if not self._container:
                    state = self._states.base(self._name)
                    self._container = make(self._client, state, self._limits, self._states.run)
                self._known[path] = Files(self._client, self._container).entry(path)
            return self._known[path]

    def close(self) -> None:
        """Remove the container."""
        if self._container:
            remove(self._client, self._container)
