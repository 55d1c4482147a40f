"""Chain: which later steps depend on a given step."""

from __future__ import annotations

from collections.abc import Sequence

from agent.analysis.diagnosis.steps import Piece, TraceStep

LEAST_CHARACTERS = 3
"""Shorter lines, such as brackets, occur everywhere and show nothing."""


def dependents(steps: Sequence[TraceStep], wrong: TraceStep) -> tuple[int, ...]:
    """The numbers of the later steps that depend on a step: those that replaced or were shown a line that it wrote, in
    the same file, and those that depend on such steps in the same way.

    A test run does not count, since it depends on every file. What a command read without printing it is unknown."""
    written: list[Piece] = list(wrong.wrote)
    numbers: list[int] = []
    for step in steps:
        if step.number > wrong.number and any(_meets(used, piece) for used in step.used for piece in written):
            numbers.append(step.number)
            written += step.wrote
    return tuple(numbers)


def _meets(used: Piece, written: Piece) -> bool:
    """Whether a step replaced or was shown a written line. The output of a search names the file of each line."""
    if used.text is None or written.text is None:
        return _same(used.path, written.path)
    shown = used.text.splitlines()
    if not used.path:
        shown = [line for line in shown if _same(line.partition(":")[0], written.path)]
    elif not _same(used.path, written.path):
        return False
    if used.loose or written.loose:
        return any(part in line for part in _lines(written.text) for line in shown)
    return any(line.rstrip().endswith(whole_line) for whole_line in _lines(written.text) for line in shown)


def _lines(text: str) -> list[str]:
    """The lines that identify a text. Lines with a mere name are used only if there are no others."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) >= LEAST_CHARACTERS]
    return [line for line in lines if not line.isidentifier()] or lines


def _same(one: str, other: str) -> bool:
    """Whether two paths may name the same file, since commands run in different directories."""
    one, other = one.removeprefix("./"), other.removeprefix("./")
    return bool(one and other) and (one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}"))
