"""Refuses invalid arguments, environment variables and paths before they are used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sandboxes import SandboxError

_SHOWN = 200


def require_command(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
    """Check that a command with these arguments can be started.

    Raises:
        SandboxError: the command is empty, or a part of it cannot be passed to a program.
    """
    if not argv:
        raise SandboxError("a command without arguments names no program to run")
    for name in env:
        if not name or "=" in name:
            raise SandboxError(
                f"{name[:_SHOWN]!r} cannot be the name of an environment variable: it is empty or contains an ="
            )
    for text in (*argv, *env, *env.values(), cwd or ""):
        require_text(text)


def require_text(text: str) -> None:
    """Check that the kernel accepts a text as an argument, a variable or a path.

    Raises:
        SandboxError: the text contains a NUL, or a surrogate that represents no byte.
    """
    try:
        unfit = b"\0" in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        unfit = True
    if unfit:
        raise SandboxError(
            f"{text[:_SHOWN]!r} contains a NUL or a lone surrogate, which no argument, variable or path can contain"
        )
