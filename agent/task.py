"""Task: all that a solver may know about the work."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandboxes import Workspace

__all__ = ["Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """An issue, the repository it is about, and how to run that repository's tests."""

    id: str
    statement: str
    """The issue, as its author wrote it (untrusted text)."""
    workspace: Workspace
    test_command: str
    """A shell command, run from the root of the workspace."""
    goal_tests: tuple[str, ...] = ()
    """Ids of visible tests that fail now and have to pass. Empty: whatever fails in the base state."""
    protected_paths: tuple[str, ...] = ()
    """Glob patterns, relative to the workspace, of files that a patch may not use to change what the tests say.
    They come on top of the patterns that are always protected (`agent.guard`)."""
    base: str = ""
    """The commit that the workspace is at, for the record; may be empty."""
    tags: dict[str, str] = field(default_factory=dict)
    """Free facts for reports and exports (repository, licence, source), never shown to a policy."""
