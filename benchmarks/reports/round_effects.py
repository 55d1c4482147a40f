"""Reports what the later rounds of a batch's runs changed (wrong to right, or right to wrong), and what they cost.

Invariant: visible and hidden tests are counted separately. Only instances whose run had a later round count. For the
hidden tests, both the first round's best patch and the final patch must be graded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from typing import Any

from agent.counting import counted
from agent.solver.refine.round_results import RefinementCounts
from benchmarks.batch.batch import Attempt
from benchmarks.grading.verdicts import Verdicts, patch_digest

NOTHING = ("", patch_digest(b""))
"""Digests for no patch and for an empty one."""


@dataclass(frozen=True, slots=True)
class RoundCost:
    """All rounds with the same number, over all runs."""

    round: int
    """The number of the round."""
    instances: int
    first_solved: int
    """Instances that, by the visible tests, this round solved and no earlier one did."""
    tokens: int
    measurements: int
    seconds: float
    cost_usd: float | None
    """None: unknown."""
    expansions: int
    repeats: int
    """The expansions that led to a known state."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """The effect of the later rounds in a batch."""

    by_visible: RefinementCounts
    """For each round after the first: its result against the best of the earlier rounds."""
    by_hidden: RefinementCounts
    """For each instance: the final patch against the best patch of the first round."""
    costs: tuple[RoundCost, ...]

    def to_json(self) -> dict[str, Any]:
        """The effect as plain data."""
        rates = {"visible": self.by_visible.to_json(), "hidden": self.by_hidden.to_json()}
        return {**rates, "rounds": [asdict(cost) for cost in self.costs]}


def refinement(attempts: Iterable[Attempt], verdicts: Verdicts) -> Refinement | None:
    """The effect of the later rounds of these attempts; None if no attempt had one."""
    refined = [attempt for attempt in attempts if len(rounds_of(attempt)) > 1]
    if not refined:
        return None
    visible = [pair for attempt in refined for pair in _by_visible(attempt)]
    hidden = [pair for attempt in refined for pair in _by_hidden(attempt, verdicts)]
    return Refinement(RefinementCounts.of(visible), RefinementCounts.of(hidden), tuple(_costs(refined)))


def as_text(effect: Refinement) -> str:
    """The effect as text, with a line for each fact."""
    visible, hidden = effect.by_visible, effect.by_hidden
    lines = [f"refinement by visible tests, rounds: {visible.total}; {visible}"]
    if hidden.total:
        lines.append(f"refinement by hidden tests, instances: {hidden.total}; {hidden}")
    for cost in effect.costs:
        dollars = "price unknown" if cost.cost_usd is None else f"{cost.cost_usd:.4f} dollars"
        spent = f"{counted(cost.measurements, 'test run')}, {cost.tokens} tokens, {dollars}, {cost.seconds:.0f} s"
        repeats = f"{cost.repeats} of {counted(cost.expansions, 'attempt')} repeated another"
        lines.append(
            f"round {cost.round}: {cost.first_solved} of {cost.instances} solved first by it; {spent}; {repeats}"
        )
    return "\n".join(lines)


def rounds_of(attempt: Attempt) -> Sequence[Mapping[str, Any]]:
    """What each round of an attempt found and cost. Earlier versions called rounds waves."""
    facts = attempt.facts
    return [{"round": each.get("wave"), **each} for each in facts.get("round_results", facts.get("waves", ()))]


def _by_visible(attempt: Attempt) -> Iterator[tuple[bool, bool]]:
    solved = [bool(facts["solved"]) for facts in rounds_of(attempt)]
    return zip(accumulate(solved, max), solved[1:], strict=False)


def _by_hidden(attempt: Attempt, verdicts: Verdicts) -> Iterator[tuple[bool, bool]]:
    """Whether the first round's best patch and the final patch are right; nothing if a verdict is unknown. A missing or
    empty patch is wrong."""
    digests = rounds_of(attempt)[0]["patch_sha256"], patch_digest(attempt.patch) if attempt.patch else ""
    graded = [verdicts.get((attempt.instance_id, digest)) for digest in digests]
    before, after = (
        False if digest in NOTHING else None if verdict is None else verdict.resolved
        for verdict, digest in zip(graded, digests, strict=True)
    )
    if before is not None and after is not None:
        yield before, after


def _costs(refined: Sequence[Attempt]) -> Iterator[RoundCost]:
    by_number: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    first = defaultdict[int, int](int)
    for attempt in refined:
        solved = [False, *(bool(facts["solved"]) for facts in rounds_of(attempt))]
        for facts, (before, now) in zip(rounds_of(attempt), pairwise(accumulate(solved, max)), strict=True):
            by_number[facts["round"]].append(facts)
            first[facts["round"]] += now and not before
    for number, rounds in sorted(by_number.items()):
        prices = [facts["cost_usd"] for facts in rounds]
        yield RoundCost(
            number,
            len(rounds),
            first[number],
            sum(facts["tokens"] for facts in rounds),
            sum(facts["measurements"] for facts in rounds),
            sum(facts["seconds"] for facts in rounds),
            None if None in prices else sum(prices),
            sum(facts["expansions"] for facts in rounds),
            sum(facts["repeats"] for facts in rounds),
        )
