"""The onset in a rollout of another program, by the output of its commands.

Such a trajectory has no measured states. There are two rules, and the one that points to the earlier step decides:

1. The same test command reported more failures than at its previous run, and never again as few: the first edit
   between the two runs.
2. A command printed a syntax error in a file that was edited before and not afterwards: the last edit of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.actions import Shell
from agent.analysis.diagnosis.commands import read_command
from agent.analysis.diagnosis.onset import Onset
from agent.analysis.diagnosis.steps import TraceStep
from agent.run.action_log import ActionRecord

_PYTEST = re.compile(r"\b(\d+) (failed|errors?)\b")
_UNITTEST = re.compile(r"\b(?:failures|errors)=(\d+)")
_ENDED = re.compile(r"^=*\s*\d+ (?:passed|failed|errors?)\b.* in [\d.]+s|^Ran \d+ tests? in ", re.MULTILINE)
_UNREADABLE = re.compile(r"(?:SyntaxError|IndentationError|TabError)\b")
_FRAME = re.compile(r"File \"([^\"]+)\", line \d+")


def find_printed_onset(action_records: Sequence[ActionRecord], steps: Sequence[TraceStep]) -> Onset | None:
    """Where the rollout went wrong; None: no rule applies."""
    onsets = filter(None, (_more_failures(action_records, steps), _unreadable(action_records, steps)))
    return min(onsets, key=lambda onset: onset.step.number if onset.step else 0, default=None)


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
    """The completed test runs: the number of the step, the command, and how many tests failed."""
    for number, record in enumerate(action_records, 1):
        action, output = record.action, record.seen.text
        if isinstance(action, Shell) and read_command(action.command).tests and _ENDED.search(output):
            counts = [int(count) for count, _ in _PYTEST.findall(_totals(output))]
            counts += map(int, _UNITTEST.findall(output))
            yield number, " ".join(action.command.split()), sum(counts)


def _totals(text: str) -> str:
    """The last line with pytest's totals."""
    lines = [line for line in text.splitlines() if _ENDED.match(line)]
    return lines[-1] if lines else ""


def _unreadable(action_records: Sequence[ActionRecord], steps: Sequence[TraceStep]) -> Onset | None:
    for record, step in zip(action_records, steps, strict=True):
        frames = _FRAME.findall(record.seen.text) if _UNREADABLE.search(record.seen.text) else []
        if not frames:
            continue
        edits = [edit for edit in steps if any(_names(frames[-1], piece.path) for piece in edit.wrote)]
        if edits and edits[-1].number < step.number:
            why = f"step {step.number} printed a syntax error in {edits[-1].wrote[0].path}, which was not edited again"
            return Onset(edits[-1], None, "a syntax error that was never fixed", why)
    return None


def _names(printed: str, path: str) -> bool:
    return printed == path or printed.endswith(f"/{path.removeprefix('./')}")
