"""Scores a policy by what it needs to solve bugs, and compares policies, with confidence intervals.

The unit is a tried state: an edit whose tests were run. The score is the number of states tried, also on unsolved bugs,
divided by the number of solved bugs. Intervals are percentiles of a bootstrap over bugs that keeps the results of
compared policies on a bug together. For few bugs such an interval is too narrow: below `FEWEST` no result is
convincing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any

from agent.counting import counted
from agent.errors import UsageError
from benchmarks.batch.batch import read_attempts
from benchmarks.reports.comparison import bootstrap

log = logging.getLogger(__name__)
DRAWS = 2000
MOST_FAILED = 0.05
"""The maximum share of searches that may fail for outside reasons, such as a bug that makes the tests hang."""
FEWEST = 20
"""The fewest bugs for a convincing comparison."""


@dataclass(frozen=True, slots=True)
class Played:
    """The result of the search on one bug."""

    solved: bool
    tried: float
    """The number of states, without the base state; a mean where several searches are averaged."""


@dataclass(frozen=True, slots=True)
class Better:
    """A comparison of two policies on the same bugs."""

    ratio: float
    """How many times fewer states per solved bug the second policy tried."""
    interval: tuple[float, float]
    """The 95 % interval of the ratio."""
    lost: int
    """The number of bugs that only the first policy solved."""
    won: int
    """The number of bugs that only the second policy solved."""
    bugs: int
    """The number of bugs that both searched."""

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data. Infinite values, which occur if a policy solved nothing, become null."""
        ratio, *interval = (value if isfinite(value) else None for value in (self.ratio, *self.interval))
        return {"ratio": ratio, "interval": interval, "lost": self.lost, "won": self.won, "bugs": self.bugs}

    @property
    def convincing(self) -> bool:
        """Whether the second policy is better: on enough bugs, with an interval above 1, and no fewer bugs solved."""
        return self.bugs >= FEWEST and self.interval[0] > 1 and self.won >= self.lost


@dataclass(frozen=True, slots=True)
class MoreSolved:
    """A comparison of two chat policies on the same bugs."""

    difference: float
    """How much larger the second policy's share of solved bugs is."""
    interval: tuple[float, float]
    """The 95 % interval of the difference."""
    lost: int
    won: int
    bugs: int
    """As in `Better`."""

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return asdict(self) | {"interval": list(self.interval)}

    @property
    def convincing(self) -> bool:
        """Whether the second policy is better: on enough bugs, with an interval above 0."""
        return self.bugs >= FEWEST and self.interval[0] > 0


def read(batch: Path, chosen: Collection[str] | None = None) -> dict[str, Played]:
    """The results of a batch (`ramify bench run`) by bug id; only those of the bugs in `chosen`, if given. Bugs whose
    searches failed for outside reasons are left out, as they show nothing.

    Raises:
        UsageError: more than the share `MOST_FAILED` of the searches failed or were not started.
    """
    attempts = read_attempts(batch)
    names = list(attempts if chosen is None else chosen)
    begun = {name: attempts[name] for name in names if name in attempts}
    ended = {name: attempt.facts for name, attempt in begun.items() if attempt.finished and "nodes" in attempt.facts}
    if failed := [name for name in names if name not in ended]:
        first = begun.get(failed[0])
        why = f"such as {failed[0]}: {(first.error or first.state) if first else 'not started'}"
        if len(failed) > MOST_FAILED * len(names):
            searches = counted(len(names), "search", "searches")
            raise UsageError(f"{batch}: {len(failed)} of {searches} did not come to an end, {why}; run it again")
        log.warning("%s: %d of %d searches did not come to an end, %s; left out", batch, len(failed), len(names), why)
    return {name: Played(facts["status"] == "solved", int(facts["nodes"]) - 1) for name, facts in ended.items()}


def common(first: Mapping[str, Played], second: Mapping[str, Played]) -> tuple[dict[str, Played], dict[str, Played]]:
    """The results of both, restricted to the bugs that both have."""
    names = [name for name in first if name in second]
    return {name: first[name] for name in names}, {name: second[name] for name in names}


def needed(results: Sequence[Played]) -> float:
    """The number of states tried per solved bug; infinite if none was solved."""
    solved = sum(result.solved for result in results)
    return sum(result.tried for result in results) / solved if solved else inf


def compare(first: Mapping[str, Played], second: Mapping[str, Played]) -> Better:
    """Compare the second policy with the first.

    Raises:
        UsageError: the results are for different bugs, or for none.
    """
    pairs, lost, won = _paired(first, second)
    return Better(_ratio(pairs), bootstrap(pairs, _ratio, DRAWS), lost, won, len(pairs))


def compare_solved(first: Mapping[str, Played], second: Mapping[str, Played]) -> MoreSolved:
    """Compare the second policy with the first by how many bugs they solved.

    Raises:
        UsageError: as `compare`.
    """
    pairs, lost, won = _paired(first, second)
    return MoreSolved(_gain(pairs), bootstrap(pairs, _gain, DRAWS), lost, won, len(pairs))


def solved_share(results: Mapping[str, Played]) -> tuple[float, tuple[float, float]]:
    """The share of bugs that were solved, and its 95 % interval."""

    def share(chosen: Sequence[Played]) -> float:
        return sum(result.solved for result in chosen) / len(chosen)

    played = [results[name] for name in sorted(results)]
    return share(played), bootstrap(played, share, DRAWS)


def _paired(first: Mapping[str, Played], second: Mapping[str, Played]) -> tuple[list[tuple[Played, Played]], int, int]:
    """The results of each bug, and how many were lost and won."""
    if first.keys() != second.keys() or not first:
        raise UsageError(f"the policies were run on different bugs: {len(first)} and {len(second)}")
    pairs = [(first[name], second[name]) for name in sorted(first)]
    lost = sum(one.solved and not other.solved for one, other in pairs)
    won = sum(other.solved and not one.solved for one, other in pairs)
    return pairs, lost, won


def _gain(pairs: Sequence[tuple[Played, Played]]) -> float:
    return sum(other.solved - one.solved for one, other in pairs) / len(pairs)


def table(by_policy: Mapping[str, Mapping[str, Played]], baseline: str) -> str:
    """A table with a line for each policy, compared with the baseline."""
    lines = [f"{'policy':<28}{'bugs':>6}{'solved':>8}{'states a solved bug':>26}{'times fewer than ' + baseline:>34}"]
    for name, by_bug in by_policy.items():
        results = list(by_bug.values())
        solved = sum(result.solved for result in results)
        cells = f"{len(results):>6}{solved:>8}{cell(needed(results), bootstrap(results, needed, DRAWS)):>26}"
        if name != baseline:
            better = compare(by_policy[baseline], by_bug)
            cells += f"{f'{cell(better.ratio, better.interval)}, {better.lost} lost':>34}"
        lines.append(f"{name:<28}{cells}")
    return "\n".join(lines) + "\n"


def cell(value: float, interval: tuple[float, float]) -> str:
    """A figure with its interval, as text."""
    return f"{value:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def _ratio(pairs: Sequence[tuple[Played, Played]]) -> float:
    one, other = needed([pair[0] for pair in pairs]), needed([pair[1] for pair in pairs])
    if other == 0:
        return 1.0 if one == 0 else inf
    return 1.0 if one == other == inf else one / other
