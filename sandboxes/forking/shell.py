"""Runs shell scripts of any length: the kernel accepts no argument of more than 128 KiB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandboxes import ExecResult, Sandbox


_LONGEST = 100_000
"""The largest script, in bytes, that is passed as an argument."""
_FILE = "/tmp/.ramify.script"  # noqa: S108  # inside the sandbox, which has no other users


def run_script(
    box: Sandbox, script: str, *, timeout_s: float, env: Mapping[str, str] | None = None, by: str = "/bin/sh"
) -> ExecResult:
    """Run a script with `by -c`, or from a file that it removes first if it is too long for an argument.

    Raises:
        SandboxError, OSError: as `Sandbox.exec` and `Sandbox.write`.
    """
    data = script.encode("utf-8", "surrogateescape")
    if len(data) <= _LONGEST:
        return box.exec([by, "-c", script], timeout_s=timeout_s, env=env)
    box.remove(_FILE)  # an earlier command may have left a directory there, or a link to somewhere else
    box.write(_FILE, f"rm -f {_FILE}; ".encode() + data)
    return box.exec([by, _FILE], timeout_s=timeout_s, env=env)
