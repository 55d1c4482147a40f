"""Ramify as a library: search for a tested patch, from an issue on a repository.

    from agent import Settings, Task, solve
    from sandboxes import Workspace

    task = Task("bug-7", "mean([]) raises", Workspace(path=Path("checkout")), "pytest -q")
    result = solve(task, Settings(), Path("runs/bug-7"))
    print(result.status, result.patch.decode())

Importing has no effect and loads nothing heavy: each name is fetched when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.build.composition import resume
    from agent.build.composition import start as solve
    from agent.build.streaming import iter_solve
    from agent.cli.ci.junit import read_failures
    from agent.cli.ci.patch_check import check as check_patch
    from agent.config import load
    from agent.errors import RamifyError
    from agent.run.command_queue import steer
    from agent.run.commands import Order
    from agent.run.run import Run
    from agent.settings import Settings
    from agent.solver.result import Result
    from agent.task import Task

__all__ = [
    "Order",
    "RamifyError",
    "Result",
    "Run",
    "Settings",
    "Task",
    "check_patch",
    "iter_solve",
    "load",
    "read_failures",
    "resume",
    "solve",
    "steer",
]

_HOMES = {
    "Order": ("agent.run.commands", "Order"),
    "RamifyError": ("agent.errors", "RamifyError"),
    "Result": ("agent.solver.solve", "Result"),
    "Run": ("agent.run.run", "Run"),
    "Settings": ("agent.settings", "Settings"),
    "Task": ("agent.task", "Task"),
    "check_patch": ("agent.cli.ci.patch_check", "check"),
    "iter_solve": ("agent.build.streaming", "iter_solve"),
    "load": ("agent.config", "load"),
    "read_failures": ("agent.cli.ci.junit", "read_failures"),
    "resume": ("agent.build.composition", "resume"),
    "solve": ("agent.build.composition", "start"),
    "steer": ("agent.run.command_queue", "steer"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agent' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
