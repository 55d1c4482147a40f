"""Keeps training and evaluation apart: nothing is learned from the bugs that policies are compared on, nor from other
bugs in the same functions.

Bugs in one function differ in a line: a policy that has fixed one of them has seen the fix of the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.errors import UsageError
from benchmarks.data.instances import Instance


def require_apart(tasks: Sequence[Instance], held_out: Sequence[Instance], learned: Iterable[str]) -> None:
    """Check that no bug is on both sides. `learned` are the ids of the bugs that earlier rounds learned from.

    Raises:
        UsageError: a bug is on both sides; or a function is, if the sources tell the bugs' functions.
    """
    used = {bug.id for bug in tasks} | set(learned)
    _refuse("are in --tasks, of this round or an earlier one,", [bug.id for bug in held_out if bug.id in used])
    functions = {_function(bug) for bug in tasks} - {""}
    _refuse("are in functions of --tasks", [bug.id for bug in held_out if _function(bug) in functions])


def common_repositories(tasks: Sequence[Instance], held_out: Sequence[Instance]) -> list[str]:
    """The repositories with bugs on both sides."""
    return sorted({bug.repo for bug in tasks} & {bug.repo for bug in held_out} - {""})


def _refuse(where: str, both: list[str]) -> None:
    if both:
        raise UsageError(
            f"{len(both)} bugs, such as {min(both)}, {where} and in --held-out: policies must not learn from the bugs "
            "on which they are compared; remove these from one side"
        )


def _function(bug: Instance) -> str:
    """The text of the bug's function, which only synthetic bugs have (`ramify bench synthesize`); else empty."""
    return str(bug.hidden.row.get("code", ""))
