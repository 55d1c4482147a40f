"""Landscapes with known optima: deceptive ways, long climbs, near-duplicate moves and programs to repair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from benchmarks.perf.landscape import Landscape, Move, State, rng_of

__all__ = ["LANDSCAPES", "Bug", "Climb", "Duplicates", "Repair", "Ways", "planted"]


@dataclass(frozen=True, slots=True)
class Ways:
    """Deceptive first branches. A child of the root begins a way, a child of any other state goes on along it or, more
    often, not. A lure begins well and ends soon; the first way is one, and most others are. The way to the optimum
    begins badly.

    A state is (start, end, level, serial), the first two in thousandths: the values of the way's first and last level.
    """

    seed: int
    lures: float = 0.8
    """Share of the ways after the first that are lures."""
    levels: int = 6
    climbs: float = 0.4
    """The probability that a child is one level higher."""
    noise: float = 0.0

    start: State = (100, 100, 0, 0)

    def move(self, state: State, index: int) -> Move:
        """There is always one more."""
        rng = rng_of("ways", self.seed, state, index)
        if state == self.start:
            lure = index == 0 or rng.random() < self.lures
            start = rng.randint(350, 500) if lure else rng.randint(100, 250)
            return Move((start, start + rng.randint(100, 200) if lure else 1000, 0, rng.getrandbits(32)))
        start, end, level, _ = state
        higher = min(self.levels, level + (rng.random() < self.climbs))
        return Move((start, end, higher, rng.getrandbits(32)))

    def value(self, state: State) -> float:
        """Grows evenly with the level."""
        start, end, level, _ = state
        return (start + (end - start) * level / self.levels) / 1000

    def tests(self, state: State) -> Mapping[str, bool]:
        """None."""
        return {}

    def fused(self, ours: State, theirs: State) -> State | None:
        """Ways do not meet."""
        return None


@dataclass(frozen=True, slots=True)
class Climb:
    """A long climb of many small steps, most of which lead down. How often a state's children are better is inherited
    with changes, and how dear they are is inherited too: a child of the root is the first of a line.

    A state is (height, fertility, dearness, serial), all in thousandths: the value, the probability that a child is
    better, and the scale of its costs.
    """

    seed: int
    noise: float = 0.0
    tail: float = 0.0
    """The shape of the Pareto distribution of costs, above 1: the less, the heavier; 0: every move costs 1."""

    start: State = (200, 150, 1000, 0)

    def move(self, state: State, index: int) -> Move:
        """There is always one more."""
        rng = rng_of("climb", self.seed, state, index)
        height, fertility, dearness, _ = state
        if state == self.start:
            fertility, dearness = rng.randint(30, 300), round(1000 * 4 ** rng.uniform(-1, 1))
        better = rng.random() * 1000 < fertility
        height += rng.randint(20, 100) if better else -rng.randint(0, 150)
        fertility = min(500, max(10, round(fertility * rng.uniform(0.8, 1.25))))
        cost = 1.0
        if self.tail:
            cost = dearness / 1000 * min(40.0, rng.paretovariate(self.tail)) * (self.tail - 1) / self.tail
        return Move((min(1000, max(0, height)), fertility, dearness, rng.getrandbits(32)), cost=cost)

    def value(self, state: State) -> float:
        """The height."""
        return state[0] / 1000

    def tests(self, state: State) -> Mapping[str, bool]:
        """None."""
        return {}

    def fused(self, ours: State, theirs: State) -> State | None:
        """Lines do not meet."""
        return None


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Near-duplicate moves: few edits in any order, a few of them proposed again and again. Half of them change nothing
    that is measured, so that many states are almost the same, and two orders of the same edits are one state.

    A state is its edits, sorted. Edits 0 to `keys` - 1 are needed, the `harmful` next ones harm, the others do neither.
    """

    seed: int
    edits: int = 18
    keys: int = 6
    harmful: int = 3
    noise: float = 0.0

    start: State = ()

    def move(self, state: State, index: int) -> Move | None:
        """Drawn anew each time: the edit of rank r, in an order of the seed's own, r ** -1.5 as likely as the first."""
        order = rng_of("duplicates", self.seed).sample(range(self.edits), self.edits)
        weights = [0.0 if edit in state else (rank + 1) ** -1.5 for rank, edit in enumerate(order)]
        if not any(weights):
            return None
        (edit,) = rng_of("duplicates", self.seed, state, index).choices(order, weights)
        return Move(_with(state, edit), file=f"part{edit % 6}.py")

    def value(self, state: State) -> float:
        """The share of the needed edits, less a tenth for each harmful one."""
        harm = sum(self.keys <= edit < self.keys + self.harmful for edit in state)
        return max(0.0, sum(edit < self.keys for edit in state) / self.keys - 0.1 * harm)

    def tests(self, state: State) -> Mapping[str, bool]:
        """One for every needed edit."""
        return {f"test_{key}": key in state for key in range(self.keys)}

    def fused(self, ours: State, theirs: State) -> State | None:
        """No two edits conflict."""
        return tuple(sorted({*ours, *theirs}))


@dataclass(frozen=True, slots=True)
class Repair:
    """Program repair without a model: `goals` failing tests, `sites` places to edit, `variants` edits for each place.

    Most edits change nothing that a test sees, a fifth of the others breaks tests. Every goal but the last needs one
    edit, the last needs two, of which one alone shows nothing. One place takes one edit: what is edited wrongly is not
    repaired below. A state proposes its edits in the order of their suspicion, disturbed, and at most `limit` of them.

    A state is its edits, sorted; edit e is at place e // variants.
    """

    seed: int
    informed: bool = True
    """Whether priors and the order of proposals favour the edits that are needed, or the others."""
    goals: int = 4
    sites: int = 30
    variants: int = 3
    limit: int = 40
    noise: float = 0.0

    start: State = ()

    def move(self, state: State, index: int) -> Move | None:
        """The next edit of a free place."""
        order = _order(self, state)
        if index >= len(order):
            return None
        edit = order[index]
        return Move(_with(state, edit), planted(self).priors[edit], file=f"module{edit // self.variants % 8}.py")

    def value(self, state: State) -> float:
        """As `agent.evaluate.value.tests` counts: (0.1 + 0.8 * goals that pass) * (1 - harm), and 1 when solved."""
        passes = self.tests(state)
        progress = sum(passes[f"goal_{goal}"] for goal in range(self.goals)) / self.goals
        broken = sum(not passed for test, passed in passes.items() if test.startswith("test_"))
        if progress == 1.0 and not broken:
            return 1.0
        return (0.1 + 0.8 * progress) * (1.0 - (max(0.1, broken / len(passes)) if broken else 0.0))

    def tests(self, state: State) -> Mapping[str, bool]:
        """The goals, and twenty tests that pass until an edit breaks them."""
        bug = planted(self)
        goals = {f"goal_{goal}": needed <= set(state) for goal, needed in enumerate(bug.needed)}
        broken = {bug.breaks[edit] for edit in state if edit in bug.breaks}
        return goals | {f"test_{test}": test not in broken for test in range(20)}

    def fused(self, ours: State, theirs: State) -> State | None:
        """They conflict where they edit one place differently."""
        both = {*ours, *theirs}
        return None if len({edit // self.variants for edit in both}) < len(both) else tuple(sorted(both))


@dataclass(frozen=True, slots=True)
class Bug:
    """What is wrong in one program, and what a policy believes."""

    needed: tuple[frozenset[int], ...]
    """The edits that make each goal pass."""
    breaks: Mapping[int, int]
    """The test that a harmful edit breaks."""
    priors: tuple[float, ...]
    """Of every edit, in [0, 1]."""


@lru_cache(maxsize=64)
def planted(program: Repair) -> Bug:
    """What is wrong with it."""
    rng = rng_of("repair", program.seed, program.goals, program.sites, program.variants)
    places = rng.sample(range(program.sites), program.goals + 1)
    right = [place * program.variants + rng.randrange(program.variants) for place in places]
    needed = (*(frozenset({edit}) for edit in right[:-2]), frozenset(right[-2:]))
    every = range(program.sites * program.variants)
    breaks = {edit: rng.randrange(20) for edit in every if edit not in right and rng.random() < 0.2}
    high, low = ((0.3, 0.9), (0.0, 0.5)) if program.informed else ((0.0, 0.3), (0.0, 0.6))
    priors = tuple(rng.uniform(*(high if edit in right else low)) for edit in every)
    return Bug(needed, breaks, priors)


@lru_cache(maxsize=4096)
def _order(program: Repair, state: State) -> tuple[int, ...]:
    """Drawn without replacement, an edit as often as its prior is high: the largest u ** (1 / prior) first."""
    rng, priors = rng_of("repair", program.seed, state), planted(program).priors
    taken = {edit // program.variants for edit in state}
    keys = [rng.random() ** (1 / (0.05 + prior)) for prior in priors]
    free = [edit for edit in range(len(priors)) if edit // program.variants not in taken]
    return tuple(sorted(free, key=lambda edit: -keys[edit])[: program.limit])


def _with(state: State, edit: int) -> State:
    return tuple(sorted((*state, edit)))


LANDSCAPES: dict[str, Callable[[int], Landscape]] = {
    "deceptive": Ways,
    "noisy": lambda seed: Climb(seed, noise=0.1),
    "heavy_tailed": lambda seed: Climb(seed, tail=1.5),
    "near_duplicate": Duplicates,
    "repair": Repair,
    "repair_misled": lambda seed: Repair(seed, informed=False),
}
"""By name, made of a seed."""
