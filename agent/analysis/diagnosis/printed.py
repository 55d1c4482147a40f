"""Printed: where a rollout of another program went wrong, by what its commands printed.

Such a trajectory has no measured states. Two rules, of which the one that points to the earlier step decides:

1. The same test command reported more failures than when it was last run, and never again as few: the first edit
   between the two runs.
2. A command printed a syntax error in a file that was edited before it and not edited again: the last edit of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.actions import Shell
from agent.analysis.diagnosis.commands import read_command
from agent.analysis.diagnosis.onset import Onset
from agent.analysis.diagnosis.steps import TraceStep
from agent.run.action_log import ActionRecord

__all__ = ["find_printed_onset"]

_PYTEST = re.compile(r"\b(\d+) (failed|errors?)\b")
_UNITTEST = re.compile(r"\b(?:failures|errors)=(\d+)")
_ENDED = re.compile(r"^=*\s*\d+ (?:passed|failed|errors?)\b.* in [\d.]+s|^Ran \d+ tests? in ", re.MULTILINE)
_UNREADABLE = re.compile(r"(?:SyntaxError|IndentationError|TabError)\b")
_FRAME = re.compile(r"File \"([^\"]+)\", line \d+")


def find_printed_onset(action_records: Sequence[ActionRecord], steps: Sequence[TraceStep]) -> Onset | None:
    """Where it went wrong; None where nothing that was printed says it."""
    found = [
        onset
        for onset in (_more_failures(action_records, steps), _unreadable(action_records, steps))
        if onset is not None
    ]
    return min(found, key=lambda onset: onset.step.number if onset.step else 0, default=None)


def _more_failures(action_records: Sequence[ActionRecord], steps: Sequence[TraceStep]) -> Onset | None:
    runs = list(_runs(action_records))
    for later, (end, command, failed) in enumerate(runs):
        before = [(start, count) for start, same, count in runs[:later] if same == command]
        again = [count for _, same, count in runs[later + 1 :] if same == command]
        if not before or failed <= before[-1][1] or any(count <= before[-1][1] for count in again):
            continue
        start, count = before[-1]
        edits = [step for step in steps if start < step.number < end and step.stage == "edit" and step.wrote]
        if edits:
            why = f"of `{command}` {count} failed at step {start}, {failed} at step {end}, and never again so few"
            among = tuple(step.number for step in edits) if len(edits) > 1 else ()
            return Onset(edits[0], None, "more tests failed from here on", why, among)
    return None


def _runs(action_records: Sequence[ActionRecord]) -> Iterator[tuple[int, str, int]]:
    """The runs of tests that came to an end: their step, what was run, and how many failed."""
    for number, action_record in enumerate(action_records, 1):
        if (
            isinstance(action_record.action, Shell)
            and read_command(action_record.action.command).tests
            and _ENDED.search(action_record.seen.text)
        ):
            counts = [int(count) for count, _ in _PYTEST.findall(_last(action_record.seen.text))]
            counts += map(int, _UNITTEST.findall(action_record.seen.text))
            yield number, " ".join(action_record.action.command.split()), sum(counts)


def _last(text: str) -> str:
    """The line with pytest's totals."""
    lines = [line for line in text.splitlines() if _ENDED.match(line)]
    return lines[-1] if lines else ""


def _unreadable(action_records: Sequence[ActionRecord], steps: Sequence[TraceStep]) -> Onset | None:
    for action_record, step in zip(action_records, steps, strict=True):
        frames = _FRAME.findall(action_record.seen.text) if _UNREADABLE.search(action_record.seen.text) else []
        if not frames:
            continue
        edits = [each for each in steps if any(_names(frames[-1], piece.path) for piece in each.wrote)]
        if edits and edits[-1].number < step.number:
            why = f"step {step.number} printed a syntax error in {edits[-1].wrote[0].path}, which was not edited again"
            return Onset(edits[-1], None, "a syntax error that was never mended", why)
    return None


def _names(printed: str, path: str) -> bool:
    return printed == path or printed.endswith(f"/{path.removeprefix('./')}")
