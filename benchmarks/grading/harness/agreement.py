"""How far two graders say the same of the same patches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.grading.verdicts import Verdict

__all__ = ["Agreement", "agreement"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """What came of comparing whether patches resolve their instances."""

    other: str
    """The name of the other grader."""
    pairs: tuple[tuple[Verdict, Verdict], ...]
    """Ours and the other's, of which both know."""
    unknown: tuple[str, ...]
    """Instances of which one of the two could not say."""

    @property
    def differing(self) -> tuple[tuple[Verdict, Verdict], ...]:
        """The pairs that do not say the same."""
        return tuple((ours, theirs) for ours, theirs in self.pairs if ours.resolved != theirs.resolved)

    def lines(self) -> Iterator[str]:
        """For people: the sum, then each instance that differs or was not compared."""
        same = len(self.pairs) - len(self.differing)
        yield f"{self.other} agrees on {same} of {len(self.pairs)} instances"
        for ours, theirs in self.differing:
            yield f"differs {ours.instance_id}: {_said(ours)} here, {_said(theirs)} there"
        for name in self.unknown:
            yield f"not compared {name}: one of the two graders failed"

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        differing = [{"ours": asdict(ours), "theirs": asdict(theirs)} for ours, theirs in self.differing]
        return {
            "grader": self.other,
            "compared": len(self.pairs),
            "agree": len(self.pairs) - len(differing),
            "differing": differing,
            "not_compared": list(self.unknown),
        }


def agreement(ours: Sequence[Verdict], theirs: Sequence[Verdict], other: str) -> Agreement:
    """Compare two graders on the patches of which both have a verdict."""
    there: Mapping[tuple[str, str], Verdict] = {(v.instance_id, v.patch_sha256): v for v in theirs}
    both = [(v, there[v.instance_id, v.patch_sha256]) for v in ours if (v.instance_id, v.patch_sha256) in there]
    known = tuple((a, b) for a, b in both if a.resolved is not None and b.resolved is not None)
    unknown = tuple(a.instance_id for a, b in both if a.resolved is None or b.resolved is None)
    return Agreement(other, known, unknown)


def _said(verdict: Verdict) -> str:
    return f"{verdict.status} ({verdict.reason})" if verdict.reason else verdict.status
