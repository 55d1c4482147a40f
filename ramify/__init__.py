"""Ramify as a library, under the name of its distribution. All names are those of `agent`, `SandboxError`, `Workspace`.

    from ramify import Settings, Task, Workspace, solve

    task = Task("bug-7", "mean([]) raises", Workspace(path=Path("checkout")), "pytest -q")
    result = solve(task, Settings(), Path("runs/bug-7"))
    print(result.status, result.patch.decode())

Importing has no effect and loads nothing heavy. When the first name is used, imports of the packages `agent`,
`benchmarks`, `prompts` and `sandboxes` in this process find Ramify's, whatever comes before them on the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ramify.packages import take_precedence

if TYPE_CHECKING:
    from agent import (
        Order,
        RamifyError,
        Result,
        Run,
        Settings,
        Task,
        check_patch,
        iter_solve,
        load,
        read_failures,
        resume,
        solve,
        steer,
    )
    from sandboxes import SandboxError, Workspace

__all__ = [
    "Order",
    "RamifyError",
    "Result",
    "Run",
    "SandboxError",
    "Settings",
    "Task",
    "Workspace",
    "check_patch",
    "iter_solve",
    "load",
    "read_failures",
    "resume",
    "solve",
    "steer",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ramify' has no attribute {name!r}")
    take_precedence()
    import agent
    import sandboxes

    return getattr(sandboxes if name in ("SandboxError", "Workspace") else agent, name)


def __dir__() -> list[str]:
    return __all__
