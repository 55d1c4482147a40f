"""What no program can be given and no file be called: refused before it goes anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sandboxes import SandboxError

__all__ = ["require_command", "require_text"]

_SHOWN = 200


def require_command(argv: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
    """That a command with these arguments can be started.

    Raises:
        SandboxError: it names nothing to run, or a part of it is no text for a program.
    """
    if not argv:
        raise SandboxError("a command without arguments names no program to run")
    for name in env:
        if not name or "=" in name:
            raise SandboxError(f"{name[:_SHOWN]!r} is no name of an environment variable; it is empty or holds an =")
    for text in (*argv, *env, *env.values(), cwd or ""):
        require_text(text)


def require_text(text: str) -> None:
    """That the kernel takes it: as an argument, a variable or a path.

    Raises:
        SandboxError: it holds a NUL, or a surrogate that stands for no byte.
    """
    try:
        unfit = b"\0" in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        unfit = True
    if unfit:
        raise SandboxError(f"{text[:_SHOWN]!r} holds a NUL or a lone surrogate: no argument, variable or path can")
