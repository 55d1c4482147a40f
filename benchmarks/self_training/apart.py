"""Apart: nothing is learned from the bugs that policies are compared on, nor from others in the same functions.

Bugs of one function differ in a line of it: a policy that has mended one has seen what mends the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.errors import UsageError
from benchmarks.data.instances import Instance

__all__ = ["common_repositories", "require_apart"]


def require_apart(tasks: Sequence[Instance], held_out: Sequence[Instance], learned: Iterable[str]) -> None:
    """`learned` are ids of the bugs that earlier rounds learned from.

    Raises:
        UsageError: a bug, or a function, as far as the sources tell, is on both sides.
    """
    known = {each.id for each in tasks} | set(learned)
    _refuse("are in --tasks, of this round or an earlier one,", [each.id for each in held_out if each.id in known])
    functions = {_function(each) for each in tasks} - {""}
    _refuse("are in functions of --tasks", [each.id for each in held_out if _function(each) in functions])


def common_repositories(tasks: Sequence[Instance], held_out: Sequence[Instance]) -> list[str]:
    """Those that both have bugs of."""
    return sorted({each.repo for each in tasks} & {each.repo for each in held_out} - {""})


def _refuse(where: str, both: list[str]) -> None:
    if both:
        raise UsageError(
            f"{len(both)} bugs, such as {min(both)}, {where} and in --held-out: nothing may be learned from those that "
            "policies are compared on"
        )


def _function(bug: Instance) -> str:
    """The text of the one that it is in, as synthetic bugs have it (`ramify bench synthesize`)."""
    return str(bug.hidden.row.get("code", ""))
