"""Ready: what a round will need late is looked for before anything is searched."""

from __future__ import annotations

import subprocess

from agent.errors import UsageError

__all__ = ["require_package"]

_LOOKS = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"


def require_package(python: str, package: str, flag: str) -> None:
    """Raises UsageError where the interpreter that `flag` names, or would name, cannot import the package."""
    try:
        done = subprocess.run([python, "-c", _LOOKS, package], capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"{python} cannot be run ({error.strerror}): name another with {flag}") from error
    if done.returncode != 0:
        raise UsageError(f"{python} has no {package}: name an interpreter that has it with {flag}")
