"""Refinement: what the later waves of a batch's runs changed, right to wrong and wrong to right, and what they cost.

Law: visible tests and hidden ones are counted apart. Only instances whose run had a later wave count, and of those by
the hidden tests only where the first wave's best patch and the final one are both graded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from typing import Any

from agent.solver.refine.worth import Changes
from benchmarks.batch.batch import Attempt
from benchmarks.grading.verdicts import Verdicts, patch_digest

__all__ = ["Refinement", "WaveCost", "as_text", "refinement"]


NOTHING = ("", patch_digest(b""))


@dataclass(frozen=True, slots=True)
class WaveCost:
    """All waves of one number together."""

    wave: int
    instances: int
    first_solved: int
    """Instances that this wave solved, by the visible tests, and none before it."""
    tokens: int
    measurements: int
    seconds: float
    cost_usd: float | None
    """None: unknown."""
    expansions: int
    repeats: int
    """Of those, the ones that led to a state that was known."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """What refining came to in a batch."""

    by_visible: Changes
    """Waves after the first, each by itself against the best of those before it."""
    by_hidden: Changes
    """Instances: the best patch of the first wave against the final one."""
    costs: tuple[WaveCost, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        rates = {"visible": self.by_visible.to_json(), "hidden": self.by_hidden.to_json()}
        return {**rates, "waves": [asdict(cost) for cost in self.costs]}


def refinement(attempts: Iterable[Attempt], verdicts: Verdicts) -> Refinement | None:
    """That of these attempts; None where none had a later wave."""
    refined = [attempt for attempt in attempts if len(_waves(attempt)) > 1]
    if not refined:
        return None
    visible = [pair for attempt in refined for pair in _by_visible(attempt)]
    hidden = [pair for attempt in refined for pair in _by_hidden(attempt, verdicts)]
    return Refinement(Changes.of(visible), Changes.of(hidden), tuple(_costs(refined)))


def as_text(found: Refinement) -> str:
    """For people, a fact a line."""
    visible, hidden = found.by_visible, found.by_hidden
    lines = [f"refinement by visible tests, waves: {visible.total}; {visible}"]
    if hidden.total:
        lines.append(f"refinement by hidden tests, instances: {hidden.total}; {hidden}")
    for cost in found.costs:
        dollars = "price unknown" if cost.cost_usd is None else f"{cost.cost_usd:.4f} dollars"
        spent = f"{cost.measurements} test runs, {cost.tokens} tokens, {dollars}, {cost.seconds:.0f} s"
        repeats = f"{cost.repeats} of {cost.expansions} attempts were repeats"
        lines.append(
            f"wave {cost.wave}: {cost.first_solved} of {cost.instances} solved first by it; {spent}; {repeats}"
        )
    return "\n".join(lines)


def _waves(attempt: Attempt) -> Sequence[Mapping[str, Any]]:
    waves: Sequence[Mapping[str, Any]] = attempt.facts.get("waves", ())
    return waves


def _by_visible(attempt: Attempt) -> Iterator[tuple[bool, bool]]:
    solved = [bool(wave["solved"]) for wave in _waves(attempt)]
    return zip(accumulate(solved, max), solved[1:], strict=False)


def _by_hidden(attempt: Attempt, verdicts: Verdicts) -> Iterator[tuple[bool, bool]]:
    """A patch that does not exist, or changes nothing, is wrong; none of which the verdict is unknown is counted."""
    digests = _waves(attempt)[0]["patch_sha256"], patch_digest(attempt.patch) if attempt.patch else ""
    graded = [verdicts.get((attempt.instance_id, digest)) for digest in digests]
    before, after = (
        False if digest in NOTHING else None if verdict is None else verdict.resolved
        for verdict, digest in zip(graded, digests, strict=True)
    )
    if before is not None and after is not None:
        yield before, after


def _costs(refined: Sequence[Attempt]) -> Iterator[WaveCost]:
    by_number: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    first = defaultdict[int, int](int)
    for attempt in refined:
        solved = [False, *(bool(wave["solved"]) for wave in _waves(attempt))]
        for wave, (before, now) in zip(_waves(attempt), pairwise(accumulate(solved, max)), strict=True):
            by_number[wave["wave"]].append(wave)
            first[wave["wave"]] += now and not before
    for number, waves in sorted(by_number.items()):
        prices = [wave["cost_usd"] for wave in waves]
        yield WaveCost(
            number,
            len(waves),
            first[number],
            sum(wave["tokens"] for wave in waves),
            sum(wave["measurements"] for wave in waves),
            sum(wave["seconds"] for wave in waves),
            None if None in prices else sum(prices),
            sum(wave["expansions"] for wave in waves),
            sum(wave["repeats"] for wave in waves),
        )
