"""Shell scripts of any length: the kernel takes no argument of more than 128 KiB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandboxes import ExecResult, Sandbox

__all__ = ["run_script"]

_LONGEST = 100_000
"""Bytes of an argument."""
_FILE = "/tmp/.ramify.script"  # noqa: S108  # inside the sandbox, where nobody else is


def run_script(
    box: Sandbox, script: str, *, timeout_s: float, env: Mapping[str, str] | None = None, by: str = "/bin/sh"
) -> ExecResult:
    """Run it as `by -c` does; one that is too long for that from a file, which is gone before it begins.

    Raises:
        SandboxError, OSError: as `Sandbox.exec` and `Sandbox.write`.
    """
    data = script.encode("utf-8", "surrogateescape")
    if len(data) <= _LONGEST:
        return box.exec([by, "-c", script], timeout_s=timeout_s, env=env)
    box.remove(_FILE)  # an earlier command may have left a directory there, or a link to somewhere else
    box.write(_FILE, f"rm -f {_FILE}; ".encode() + data)
    return box.exec([by, _FILE], timeout_s=timeout_s, env=env)
