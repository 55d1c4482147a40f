"""A trial of skills: two batches of held-out instances, without and with them, decide if they are kept (Trace2Skill).

Invariants: no instance of a trial is an issue that the skills were learned from; the batches differ only in what they
were shown from the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import UsageError
from agent.learning.memory.admission import Unverified, issue_of
from agent.learning.memory.insights import insight_id
from agent.learning.memory.issue import Issue
from agent.learning.memory.items import Source
from agent.learning.memory.recall import OPENING
from agent.run.run import Run
from benchmarks.batch.batch import read_identity
from benchmarks.reports.comparison import Comparison, compare, read_pairs


@dataclass(frozen=True, slots=True)
class SkillTrial:
    """The result of a trial."""

    comparison: Comparison
    """The first batch is the one without the skills."""
    left_out: int
    """The instances that are not graded in both batches."""
    shown: int
    """How many of the compared instances were shown one of the skills."""

    @property
    def kept(self) -> bool:
        """Whether more is resolved with the skills than without them."""
        return self.comparison.difference > 0


def skill_trial(sources: Sequence[Source], skills: Sequence[str], without: Path, with_skills: Path) -> SkillTrial:
    """Compare the two batches to judge `skills`, which were learned from `sources`.

    Raises:
        UsageError: the batches cannot be compared, differ in more than their memory, or learned from their own
            instances; an instance is an issue that the skills were learned from; the first batch was shown skills, or
            the second was not.
        agent.errors.JournalError: the run of an instance cannot be read.
    """
    pairs, left_out = read_pairs(without, with_skills)
    _require_same_settings(without, with_skills)
    ids = {insight_id(text) for text in skills}
    shown = 0
    for name in (pair.first.instance_id for pair in pairs):
        with Run.read(without / name) as before, Run.read(with_skills / name) as after:
            _require_held_back(name, after, sources)
            if ids & _recalled(before):
                raise UsageError(f"{without / name} was shown some of the skills: name the batch without them first")
            shown += bool(ids & _recalled(after))
    if not shown:
        raise UsageError(
            f"no run in {with_skills} was shown one of the skills: load them into a memory with `ramify memory skills "
            "load`, and run the batch with a chat model and -c memory.path=FILE -c memory.remember=false"
        )
    return SkillTrial(compare(pairs), left_out, shown)


def _require_same_settings(without: Path, with_skills: Path) -> None:
    settings = [read_identity(batch).chosen or {} for batch in (without, with_skills)]
    for batch, chosen in zip((without, with_skills), settings, strict=True):
        memory = chosen.get("memory", {})
        if memory.get("path") and memory.get("enabled", True) and memory.get("remember", True):
            raise UsageError(
                f"the runs in {batch} learned from one another through their memory, which may explain a difference: "
                "run the batch with -c memory.remember=false"
            )
    one, other = ({key: value for key, value in chosen.items() if key != "memory"} for chosen in settings)
    if differing := sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)):
        raise UsageError(
            f"{without} and {with_skills} were run with different settings ({', '.join(differing)}), which may explain "
            "a difference: run them with settings that differ only in the memory"
        )


def _require_held_back(name: str, run: Run, sources: Sequence[Source]) -> None:
    try:
        issue = issue_of(run)
    except Unverified:  # its base state was not measured
        issue = Issue(name, "")
    for source in sources:
        if source.issue.same(issue):
            raise UsageError(
                f"{name} is not held back: the skills were learned from {source.id}, a run on that issue; leave it out "
                "of both batches"
            )


def _recalled(run: Run) -> set[str]:
    """The ids of what was recalled for the base state."""
    return set((run.note(0, OPENING) or {}).get("ids", ()))
