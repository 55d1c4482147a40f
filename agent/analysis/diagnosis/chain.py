"""Chain: which later steps depend on one."""

from __future__ import annotations

from collections.abc import Sequence

from agent.analysis.diagnosis.steps import Piece, TraceStep

__all__ = ["dependents"]

LEAST_CHARACTERS = 3
"""A shorter line (a bracket) is found everywhere and shows nothing."""


def dependents(steps: Sequence[TraceStep], wrong: TraceStep) -> tuple[int, ...]:
    """The numbers of the later steps that depend on a step: those that replaced or were shown a line that it wrote, in
    the same file, and those that depend on them in the same way.

    Running tests is no dependence: it looks at every file. What a command read without printing it is not known."""
    written: list[Piece] = list(wrong.wrote)
    found: list[int] = []
    for step in steps:
        if step.number > wrong.number and any(_meets(used, piece) for used in step.used for piece in written):
            found.append(step.number)
            written += step.wrote
    return tuple(found)


def _meets(used: Piece, written: Piece) -> bool:
    """Whether something that was written is in what a step replaced or saw. A search says itself whose lines it
    shows."""
    if used.text is None or written.text is None:
        return _same(used.path, written.path)
    shown = used.text.splitlines()
    if not used.path:
        shown = [line for line in shown if _same(line.partition(":")[0], written.path)]
    elif not _same(used.path, written.path):
        return False
    if used.loose or written.loose:
        return any(part in line for part in _lines(written.text) for line in shown)
    return any(line.rstrip().endswith(whole) for whole in _lines(written.text) for line in shown)


def _lines(text: str) -> list[str]:
    """The lines by which a text is known again. A mere name is one only where there is nothing else."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) >= LEAST_CHARACTERS]
    return [line for line in lines if not line.isidentifier()] or lines


def _same(one: str, other: str) -> bool:
    """Whether two paths may name one file: commands name them from wherever they are run."""
    one, other = one.removeprefix("./"), other.removeprefix("./")
    return bool(one and other) and (one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}"))
