"""Scores: what a policy needed on a set of bugs, and how much less than another one, with intervals.

The unit is a state that was tried: an edit whose tests were run. What a policy needs a solved bug is all states that it
tried, on bugs that it did not solve, too, by the bugs that it solved. Intervals are percentiles of a bootstrap over
bugs, in which the policies that are compared keep their bugs together. Of few bugs such an interval is too narrow:
below `FEWEST` nothing is convincing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from agent.errors import UsageError
from benchmarks.batch.batch import read_attempts

__all__ = ["FEWEST", "MOST_FAILED", "Better", "Played", "common", "compare", "needed", "read", "table"]

log = logging.getLogger(__name__)
DRAWS = 2000
MOST_FAILED = 0.05
"""The share of searches that may fail for reasons of the world's, as that of a bug which never comes to an end."""
FEWEST = 20
"""Bugs by which one policy is told from another."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Played:
    """How the search for one bug went."""

    solved: bool
    tried: int
    """States, the base state not counted."""


@dataclass(frozen=True, slots=True)
class Better:
    """One policy beside another on the same bugs."""

    ratio: float
    """How many times fewer states the second one tried a solved bug."""
    interval: tuple[float, float]
    """95 %."""
    lost: int
    """Bugs that only the first one solved."""
    won: int
    """Bugs that only the second one solved."""
    bugs: int
    """On which both were played."""

    def to_json(self) -> dict[str, Any]:
        """Plain data. What is infinite, where one of them solved nothing, is null."""
        ratio, *interval = (each if isfinite(each) else None for each in (self.ratio, *self.interval))
        return {"ratio": ratio, "interval": interval, "lost": self.lost, "won": self.won, "bugs": self.bugs}

    @property
    def convincing(self) -> bool:
        """Fewer states, with an interval of enough bugs that is all above 1, and no fewer bugs solved."""
        return self.bugs >= FEWEST and self.interval[0] > 1 and self.won >= self.lost


def read(batch: Path, chosen: Collection[str] | None = None) -> dict[str, Played]:
    """The bugs of a batch (`ramify bench run`) by their ids; where some are `chosen`, those alone. Bugs whose searches
    failed for reasons of the world's are left out, as nothing can be said of them.

    Raises:
        UsageError: more than `MOST_FAILED` of the searches failed, or were not begun.
    """
    attempts = read_attempts(batch)
    wanted = list(attempts if chosen is None else chosen)
    known = {name: attempts[name] for name in wanted if name in attempts}
    ended = {name: each.facts for name, each in known.items() if each.settled and "nodes" in each.facts}
    if failed := [name for name in wanted if name not in ended]:
        first = known.get(failed[0])
        why = f"such as {failed[0]}: {(first.error or first.state) if first else 'not begun'}"
        if len(failed) > MOST_FAILED * len(wanted):
            raise UsageError(
                f"{batch}: {len(failed)} of {len(wanted)} searches did not come to an end, {why}; run it again"
            )
        log.warning("%s: %d of %d searches did not come to an end, %s; left out", batch, len(failed), len(wanted), why)
    return {name: Played(facts["status"] == "solved", int(facts["nodes"]) - 1) for name, facts in ended.items()}


def common(first: Mapping[str, Played], second: Mapping[str, Played]) -> tuple[dict[str, Played], dict[str, Played]]:
    """Both, on the bugs that both have."""
    names = [name for name in first if name in second]
    return {name: first[name] for name in names}, {name: second[name] for name in names}


def needed(played: Sequence[Played]) -> float:
    """States tried a solved bug; infinite where none was solved."""
    solved = sum(each.solved for each in played)
    return sum(each.tried for each in played) / solved if solved else inf


def compare(first: Mapping[str, Played], second: Mapping[str, Played]) -> Better:
    """The second beside the first.

    Raises:
        UsageError: they were not played on the same bugs, or on none.
    """
    if first.keys() != second.keys() or not first:
        raise UsageError(f"the policies were played on other bugs: {len(first)} and {len(second)}")
    names = sorted(first)
    pairs = [(first[name], second[name]) for name in names]
    lost = sum(one.solved and not other.solved for one, other in pairs)
    won = sum(other.solved and not one.solved for one, other in pairs)
    return Better(_ratio(pairs), _interval(pairs, _ratio), lost, won, len(pairs))


def table(by_policy: Mapping[str, Mapping[str, Played]], baseline: str) -> str:
    """A line a policy, each beside the baseline."""
    lines = [f"{'policy':<28}{'bugs':>6}{'solved':>8}{'states a solved bug':>26}{'times fewer than ' + baseline:>34}"]
    for name, played in by_policy.items():
        known = list(played.values())
        solved = sum(each.solved for each in known)
        cells = f"{len(known):>6}{solved:>8}{_cell(needed(known), _interval(known, needed)):>26}"
        if name != baseline:
            better = compare(by_policy[baseline], played)
            cells += f"{f'{_cell(better.ratio, better.interval)}, {better.lost} lost':>34}"
        lines.append(f"{name:<28}{cells}")
    return "\n".join(lines) + "\n"


def _cell(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def _ratio(pairs: Sequence[tuple[Played, Played]]) -> float:
    one, other = needed([pair[0] for pair in pairs]), needed([pair[1] for pair in pairs])
    if other == 0:
        return 1.0 if one == 0 else inf
    return 1.0 if one == other == inf else one / other


def _interval(items: Sequence[_T], of: Callable[[Sequence[_T]], float]) -> tuple[float, float]:
    rng = Random(0)
    drawn = sorted(of(rng.choices(items, k=len(items))) for _ in range(DRAWS))
    return drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS) - 1]
