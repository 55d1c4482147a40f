"""Reports the results of real lines of work and a judge's scores of their answers: rates for calibrating simulations.

    python -m benchmarks.perf.lines BATCH...

Each batch was solved with a judge (`ramify bench run --effort medium`) and graded (`ramify bench grade`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from agent.errors import UsageError
from agent.run.run import Run
from benchmarks.batch.batch import Attempt
from benchmarks.grading.verdicts import Verdicts, patch_digest
from benchmarks.perf.table import share, table
from benchmarks.reports.report import read_graded

ACCEPTS = 0.5
"""The lowest score with which a judge calls a patch right."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one instance."""

    instance_id: str
    right: bool
    """Whether the answer is right according to the hidden tests."""
    reproduced: bool
    """Whether it adds a test that fails without the answer and passes with it."""
    score: float | None
    """The judge's score of the state, in [0, 1]; None if the judge was not asked."""
    requests: int
    """The number of requests that it took to propose the answer."""
    judged: int
    """The number of the judge's requests."""
    measurements: int
    """The test runs."""


def answers(batch: Path) -> Iterator[Answer]:
    """Read the graded answers of a batch.

    Raises:
        UsageError: the folder is not a batch.
        agent.errors.JournalError: a run cannot be read.
    """
    attempts, verdicts = read_graded(batch)
    for attempt in attempts:
        if (right := _right(attempt, verdicts)) is not None:
            spent = attempt.facts["spent"]
            yield Answer(
                attempt.instance_id,
                right,
                bool(attempt.facts.get("reproduced_by")),
                _score(batch / attempt.instance_id),
                spent.get("propose", {}).get("model_calls", 0),
                spent.get("judge", {}).get("model_calls", 0),
                attempt.facts["measurements"],
            )


def _right(attempt: Attempt, verdicts: Verdicts) -> bool | None:
    verdict = verdicts.get((attempt.instance_id, patch_digest(attempt.patch)))
    return None if verdict is None else verdict.resolved


def _score(directory: Path) -> float | None:
    """The judge's score of the last state that was submitted, or else of the last state."""
    with Run.read(directory) as run:
        states = [node for node in run.tree if "judge" in node.evaluation.parts]
        last = [node for node in states if node.submitted] or states
        return last[-1].evaluation.parts["judge"] if last else None


def rates(found: Sequence[Answer]) -> str:
    """The rates, one on each line."""
    lines = [
        ("right", _share(each.right for each in found)),
        ("with a test of its own that shows the issue", _share(each.reproduced for each in found)),
        ("right, of those with such a test", _share(each.right for each in found if each.reproduced)),
        ("right, of those without", _share(each.right for each in found if not each.reproduced)),
        (f"right patches that the judge gives at least {ACCEPTS}", _accepted(each for each in found if each.right)),
        (f"wrong patches that the judge gives at least {ACCEPTS}", _accepted(each for each in found if not each.right)),
        ("requests to propose it, of the judge, test runs (medians)", _medians(found)),
    ]
    return table((f"{len(found)} answers", ""), lines)


def _share(flags: Iterable[bool]) -> str:
    known = list(flags)
    return share(sum(known), len(known))


def _accepted(found: Iterable[Answer]) -> str:
    scores = [each.score for each in found if each.score is not None]
    shown = f", scores {min(scores):.2f} to {max(scores):.2f}" if scores else ""
    return _share(score >= ACCEPTS for score in scores) + shown


def _medians(found: Sequence[Answer]) -> str:
    counts = zip(*((each.requests, each.judged, each.measurements) for each in found), strict=True)
    return ", ".join(f"{median(column):g}" for column in counts)


def main(batches: Sequence[str]) -> None:
    """Print the answers of graded batches, and their rates.

    Raises:
        UsageError: a folder is not a batch, or nothing is graded.
        agent.errors.JournalError: a run cannot be read.
    """
    found = [answer for batch in batches for answer in answers(Path(batch))]
    if not found:
        raise UsageError("no graded answers: give folders of `ramify bench run`, after `ramify bench grade`")
    for each in sorted(found, key=lambda answer: answer.instance_id):
        print(each, file=sys.stderr)
    print(rates(found))


if __name__ == "__main__":
    main(sys.argv[1:])
