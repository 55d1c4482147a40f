"""Compares the verdicts of two graders on the same patches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agent.counting import counted
from benchmarks.grading.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two graders on whether patches resolve their instances."""

    other: str
    """The name of the other grader."""
    pairs: tuple[tuple[Verdict, Verdict], ...]
    """Our verdict and the other's, for patches that neither calls an error."""
    unknown: tuple[str, ...]
    """Instances for which one of the two verdicts is an error."""

    @property
    def differing(self) -> tuple[tuple[Verdict, Verdict], ...]:
        """The pairs that disagree."""
        return tuple((ours, theirs) for ours, theirs in self.pairs if ours.resolved != theirs.resolved)

    def lines(self) -> Iterator[str]:
        """The result as text: a summary, then each instance that differs or was not compared."""
        same = len(self.pairs) - len(self.differing)
        yield f"{self.other} agrees on {same} of {counted(len(self.pairs), 'instance')}"
        for ours, theirs in self.differing:
            yield f"differs {ours.instance_id}: {ours.summary} here, {theirs.summary} there"
        for name in self.unknown:
            yield f"not compared {name}: one of the two graders failed"

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        differing = [{"ours": asdict(ours), "theirs": asdict(theirs)} for ours, theirs in self.differing]
        return {
            "grader": self.other,
            "compared": len(self.pairs),
            "agree": len(self.pairs) - len(differing),
            "differing": differing,
            "not_compared": list(self.unknown),
        }


def agreement(ours: Sequence[Verdict], theirs: Sequence[Verdict], other: str) -> Agreement:
    """Compare two graders on the patches for which both have a verdict."""
    by_patch: Mapping[tuple[str, str], Verdict] = {(v.instance_id, v.patch_sha256): v for v in theirs}
    both = [(v, by_patch[v.instance_id, v.patch_sha256]) for v in ours if (v.instance_id, v.patch_sha256) in by_patch]
    known = tuple((a, b) for a, b in both if a.resolved is not None and b.resolved is not None)
    unknown = tuple(a.instance_id for a, b in both if a.resolved is None or b.resolved is None)
    return Agreement(other, known, unknown)
