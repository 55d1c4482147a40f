"""Failures of a sandbox itself; a command that fails is data, in `ExecResult`.

SandboxError
 +-- SandboxUnavailable     this machine cannot run such a sandbox; the message says what to change
 +-- ImageMissing           the image does not exist here
 +-- RegistryBusy           the registry of an image has had too many requests, and we have waited long enough
 +-- RegistryDown           the registry of an image, or the way to it, failed, and we have waited long enough
 +-- PullLeft               nobody waits for an image any longer
 +-- SnapshotMissing        the snapshot was discarded or never existed
 +-- StateDamaged           a fork of the state is not what was frozen; nothing has run in it
 +-- SandboxLost            the fork is gone: a time-out threw it away, or its guest died
 +-- TemplateLost           the template did not serve the fork, which is of no use any more
 +-- StoreFull              no space for another state
 +-- SetupFailed            a set-up command returned non-zero; carries its output
 +-- GitFailed              this machine's git did not do what it was asked for; carries what it said
      +-- GitTooSlow        it took too long
"""

from __future__ import annotations

__all__ = [
    "GitFailed",
    "GitTooSlow",
    "ImageMissing",
    "PullLeft",
    "RegistryBusy",
    "RegistryDown",
    "SandboxError",
    "SandboxLost",
    "SandboxUnavailable",
    "SetupFailed",
    "SnapshotMissing",
    "StateDamaged",
    "StoreFull",
    "TemplateLost",
]


class SandboxError(Exception):
    """Base class of every failure of a sandbox itself."""


class SandboxUnavailable(SandboxError):
    """This machine cannot run such a sandbox; the message says what to change."""


class ImageMissing(SandboxError):
    """The image does not exist on this engine."""


class RegistryBusy(SandboxError):
    """The registry of an image has had too many requests, and went on saying so."""


class RegistryDown(SandboxError):
    """The registry of an image, or the way to it, failed, and went on failing."""


class PullLeft(SandboxError):
    """Nobody waits for an image any longer (`sandboxes.docker.pulls.until`)."""


class SnapshotMissing(SandboxError):
    """The snapshot was discarded or never existed."""


class StateDamaged(SandboxError):
    """A fork of the state is not what was frozen; nothing has run in it."""


class SandboxLost(SandboxError):
    """The fork is gone: a time-out threw it away, or its guest died."""


class TemplateLost(SandboxError):
    """The template could not run an order; what it had begun to do may be in the fork, which is of no use any more."""


class StoreFull(SandboxError):
    """There is no space left for another state."""


class SetupFailed(SandboxError):
    """A set-up command returned non-zero; the message ends with the tail of its output."""


class GitFailed(SandboxError):
    """This machine's git did not do what it was asked for; `said` is its own words."""

    def __init__(self, command: str, said: str) -> None:
        super().__init__(f"git {command} failed: {said}")
        self.said = said


class GitTooSlow(GitFailed):
    """It was ended because it took too long."""

    def __init__(self, command: str, timeout_s: float, place: object) -> None:
        super().__init__(command, f"git {command} took longer than {timeout_s:g} s in {place}")
        self.args = (self.said,)
