"""Compares ways to choose among a run's candidates by what they would have resolved: the tournament, the baselines, and
an oracle.

Invariant: all are compared on the same instances: those whose candidates are all graded. The oracle resolves an
instance if any candidate does, so it is an upper bound for every selector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.counting import counted
from agent.run.run import Run
from agent.solver.tournament.note import notes
from benchmarks.batch.batch import Attempt, read_attempts, read_identity
from benchmarks.data.predictions import Prediction
from benchmarks.grading.verdicts import Verdicts, patch_digest
from benchmarks.reports.round_effects import rounds_of

TOURNAMENT, ORACLE = "tournament", "oracle"


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidates of one instance after the last round, by the digests of their patches."""

    instance_id: str
    candidates: tuple[str, ...]
    picks: Mapping[str, str]
    """The pick of each selector."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The result of one selector."""

    selector: str
    resolved: int
    of: int
    """The number of graded instances in which the selector could pick a candidate."""


def read_choices(out: Path, attempts: Iterable[Attempt]) -> list[Choice]:
    """The choices of a batch, in the order of its attempts; runs without candidates have none.

    Raises:
        agent.errors.JournalError: a run cannot be read.
    """
    choices = (_choice(a.instance_id, out / a.instance_id) for a in attempts if _may_choose(a))
    return [choice for choice in choices if choice is not None]


def candidates(out: Path) -> Iterator[Prediction]:
    """The patches of all candidates and the best patch of each round, to be graded beside the predictions of a batch.
    Patches that are predictions already, or that change nothing, are left out.

    Raises:
        UsageError: the folder is not a batch.
        agent.errors.JournalError: a run cannot be read.
    """
    model = read_identity(out).model
    for attempt in filter(_may_choose, read_attempts(out).values()):
        run_dir = out / attempt.instance_id
        choice = _choice(attempt.instance_id, run_dir)
        of_rounds = (str(each["patch_sha256"]) for each in rounds_of(attempt))
        patches = dict.fromkeys((*(choice.candidates if choice else ()), *of_rounds))
        for patch in patches.keys() - {patch_digest(attempt.patch), patch_digest(b""), ""}:
            yield Prediction(attempt.instance_id, model, (run_dir / "blobs" / patch).read_bytes(), attempt.mode)


def standings(choices: Iterable[Choice], verdicts: Verdicts) -> list[Standing]:
    """The standing of each selector, with the tournament first and the oracle last; none if nothing is graded."""
    graded = [choice for choice in choices if _graded(choice, verdicts)]
    resolved = {
        choice.instance_id: {p for p in choice.candidates if verdicts[choice.instance_id, p].resolved}
        for choice in graded
    }
    lines = []
    for name in dict.fromkeys(name for choice in graded for name in choice.picks):
        picked = [choice for choice in graded if name in choice.picks]
        right = sum(choice.picks[name] in resolved[choice.instance_id] for choice in picked)
        lines.append(Standing(name, right, len(picked)))
    return [*lines, Standing(ORACLE, sum(map(bool, resolved.values())), len(graded))] if graded else []


def summary(choices: Sequence[Choice], lines: Sequence[Standing]) -> str:
    """The standings as text, with a line for each selector; empty if no run had candidates to choose among."""
    if not choices:
        return ""
    if not lines:
        return (
            f"{counted(len(choices), 'instance')} had candidates to choose among, and none has all of them graded: "
            "grade again with --candidates"
        )
    whole = counted(lines[-1].of, "instance")
    head = f"of {whole} whose candidates are all graded ({len(choices)} had some), resolved by choosing"
    return "\n".join([head, *(f"  {line.selector:<10} {line.resolved} of {line.of}" for line in lines)])


def _may_choose(attempt: Attempt) -> bool:
    """Whether the run had several rollouts, or does not record how many (it was cut short, or an old version made
    it)."""
    return attempt.facts.get("rollouts") not in (0, 1)


def _choice(instance_id: str, run_dir: Path) -> Choice | None:
    if not (run_dir / "journal.jsonl").is_file():
        return None
    with Run.read(run_dir) as run:
        ranked = [note for _, note in notes(run) if note["order"]]
    if not ranked:
        return None
    order, baselines = ranked[-1]["order"], ranked[-1]["baselines"]
    patches = {node: each["patch"] for each in order for node in (each["node"], *each["same"])}
    picks = {name: patches[node] for name, node in baselines.items()}
    return Choice(instance_id, tuple(e["patch"] for e in order), {TOURNAMENT: order[0]["patch"], **picks})


def _graded(choice: Choice, verdicts: Verdicts) -> bool:
    known = (verdicts.get((choice.instance_id, patch)) for patch in choice.candidates)
    return all(verdict is not None and verdict.resolved is not None for verdict in known)
