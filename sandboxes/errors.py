"""Failures of a sandbox itself; a command that fails is data, in `ExecResult`.

SandboxError
 +-- SandboxUnavailable     this machine cannot run this kind of sandbox; the message says what to change
 +-- ImageMissing           the image does not exist here
 +-- RegistryBusy           the registry of an image still refuses too many requests after all retries
 +-- RegistryDown           the registry of an image, or the network to it, still fails after all retries
 +-- PullLeft               the caller stopped waiting for an image
 +-- SnapshotMissing        the snapshot was discarded or never existed
 +-- StateDamaged           a fork of the state is not what was frozen; nothing has run in it
 +-- SandboxLost            the fork is gone: a time-out threw it away, or its guest died
 +-- TemplateLost           the template failed to run a request; the fork cannot be used any more
 +-- StoreFull              no space for another state
 +-- SetupFailed            a set-up command returned non-zero; carries its output
 +-- GitFailed              a git command failed on this machine; carries its output
      +-- GitTooSlow        the command took too long
"""

from __future__ import annotations


class SandboxError(Exception):
    """Base class of every failure of a sandbox itself."""


class SandboxUnavailable(SandboxError):
    """This machine cannot run this kind of sandbox; the message says what to change."""


class ImageMissing(SandboxError):
    """The image does not exist on this engine."""


class RegistryBusy(SandboxError):
    """The registry of an image still refuses too many requests after all retries."""


class RegistryDown(SandboxError):
    """The registry of an image, or the network to it, still fails after all retries."""


class PullLeft(SandboxError):
    """The caller stopped waiting for an image (`sandboxes.docker.pulls.until`)."""


class SnapshotMissing(SandboxError):
    """The snapshot was discarded or never existed."""


class StateDamaged(SandboxError):
    """A fork of the state is not what was frozen; nothing has run in it."""


class SandboxLost(SandboxError):
    """The fork is gone: a time-out threw it away, or its guest died."""


class TemplateLost(SandboxError):
    """The template failed to run a request. Its partial effects may be in the fork, which cannot be used any more."""


class StoreFull(SandboxError):
    """There is no space left for another state."""


class SetupFailed(SandboxError):
    """A set-up command returned non-zero; the message ends with the end of its output."""


class GitFailed(SandboxError):
    """A git command failed on this machine; `said` is its output."""

    def __init__(self, command: str, said: str) -> None:
        super().__init__(f"git {command} failed: {said}")
        self.said = said


class GitTooSlow(GitFailed):
    """A git command was ended because it took too long."""

    def __init__(self, command: str, timeout_s: float, place: object) -> None:
        super().__init__(command, f"git {command} took longer than {timeout_s:g} s in {place}")
        self.args = (self.said,)
